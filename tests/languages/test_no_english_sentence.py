"""A Chinese page holds no English sentence: only what programs printed, code, commands, and names."""

import re
from pathlib import Path
from typing import List

import pytest

import ddp_probe
from ddp_probe.judging import examples
from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading.load_run import from_lines
from ddp_probe.showing import terminal
from ddp_probe.showing.language import CHINESE
from ddp_probe.wording.values import Quote

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
JOBS = sorted({path.parent.relative_to(RECORDED).as_posix() for path in RECORDED.glob("*/*/rank*.jsonl")})
_WORDS = re.compile(r"[A-Za-z][a-z]+(?:,? [a-z'-]{2,}){3,}")
_COMMAND = re.compile(r"'[^'\n]*'|\b(?:git|dmesg|grep) [^\n，。；）]*")
_WIDE = 100_000  # No line is wrapped.


@pytest.fixture(autouse=True)
def no_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what is the same in each language."""
    monkeypatch.setattr(Quote, "written", lambda *_: "…")


def _english(diagnosis: Diagnosis) -> List[str]:
    """Return the English sentences of the Chinese page."""
    page = "\n".join(line.text for line in terminal.lines(diagnosis, _WIDE, say=CHINESE))
    return _WORDS.findall(_COMMAND.sub("…", page))


def _rules() -> List[str]:
    return [rule_of(module).slug for module in modules()]


@pytest.mark.parametrize("slug", _rules())
def test_the_pages_of_a_rules_examples(slug: str) -> None:
    """What a rule says of its examples is Chinese, but for quotations."""
    assert {example.name: _english(judge(from_lines(example.log))) for example in examples.of(slug)} == {
        example.name: [] for example in examples.of(slug)
    }


@pytest.mark.sample(of="recorded pages", few=20)
@pytest.mark.parametrize("job", JOBS)
def test_the_page_of_a_recorded_job(job: str) -> None:
    """What is said of a recorded run is Chinese, but for quotations."""
    assert _english(ddp_probe.diagnose(ddp_probe.read(str(RECORDED / job)))) == []
