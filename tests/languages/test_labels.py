"""Every word that a page for a person asks for has a Chinese one, with the same places for names and numbers."""

import ast
import re
from pathlib import Path
from typing import Iterator, Set

import pytest
from texts import CHINESE

import ddp_probe
from ddp_probe.diagnose.rule import ERROR, HIGH, LOW, MEDIUM, WARNING
from ddp_probe.doctor import check
from ddp_probe.doctor.checks import HUNDREDS as HUNDREDS_OF_CHECKS
from ddp_probe.report import rank_state, ranks
from ddp_probe.report.brief import GOOD_ORDER
from ddp_probe.report.labels_zh import LABELS
from ddp_probe.report.page import HUNDREDS

PACKAGE = Path(ddp_probe.__file__).parent
PLACE = re.compile(r"%(?:\.\d)?[a-z]")
NOT_CHINESE = {"ranks", " on %s"}  # A rank stays a rank; a host or a rank follows a comma.
OTHERS = {"starting", "a process", " and %d more groups"}
PUNCTUATION = {", ", "; ", ": ", "."}


def _calls() -> Iterator[ast.Call]:
    for path in sorted([*(PACKAGE / "report").glob("*.py"), *(PACKAGE / "cli").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield node


def _asked() -> Set[str]:
    """Return the words that pages ask for by name: say("…"), and say.counted(number, "…")."""
    words: Set[str] = set()
    for call in _calls():
        parts = [call.args[0]] if isinstance(call.func, ast.Name) and call.func.id == "say" else []
        counted = isinstance(call.func, ast.Attribute) and call.func.attr == "counted" and getattr(call.func.value, "id", "") == "say"
        parts += [call.args[1]] if counted else []
        for part in parts:
            found = [node.value for node in ast.walk(part) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            words.update("%d " + word if counted else word for word in found)
    return words


def _tables() -> Set[str]:
    """Return the words that pages ask for by what they show: headings, phases, ends, results."""
    phases = {word for pair in rank_state._PHASES.values() for word in pair if word}
    ends = {rank_state.ENDED, rank_state.RUNNING, rank_state.NO_END, rank_state.NO_FILE, "failed", "killed", "stopped", "exit"}
    results = {check.OK, check.WARN, check.FAIL, check.SKIPPED, check.UNKNOWN}
    return {
        *HUNDREDS.values(),
        *HUNDREDS_OF_CHECKS.values(),
        *phases,
        *ends,
        *results,
        ranks.NOTE,
        GOOD_ORDER,
        HIGH,
        MEDIUM,
        LOW,
        WARNING,
        *OTHERS,
    }


def test_the_words_are_found() -> None:
    """The search for words finds those of a report, of a rule's page, and of doctor."""
    assert {"evidence", "what you see", "do: %s", "%d rank", "%d check fails", "%d checks fail"} <= _asked()
    assert ERROR not in _tables()


@pytest.mark.parametrize("word", sorted(_asked() | _tables()))
def test_a_word_has_a_chinese_one(word: str) -> None:
    """A word of a page is in the table, in Chinese, with the same places in the same order."""
    assert word in LABELS, "Write it in ddp_probe/report/labels_zh.py."
    chinese = LABELS[word]
    assert CHINESE.search(chinese) or word in NOT_CHINESE or word in PUNCTUATION or not re.search("[a-z]", PLACE.sub("", word))
    assert PLACE.findall(chinese) == PLACE.findall(word)


def test_no_word_is_left_over() -> None:
    """Each word of the table is one that the package has."""
    sources = [path for path in PACKAGE.rglob("*.py") if path.name != "labels_zh.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    left = [word for word in LABELS if '"%s"' % word not in text and word not in _asked() | _tables()]
    assert left == []
