"""skills/ddp-probe/SKILL.md, which coding agents follow: its lines are typed over a recorded run, and its exit codes are those of report."""

import re
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List

import page_commands
import pytest
import yaml
from page_blocks import REPO, blocks, text

from ddp_probe.cli import report

PAGE = "skills/ddp-probe/SKILL.md"
_LINES = [line for block in blocks(PAGE) for line in block.text.splitlines()]
_ELSEWHERE = ("python -m ddp_probe install", "DDP_PROBE=1 torchrun")  # tests/pages/test_first_commands.py types these.
_LOOKS = ("python -m ddp_probe attach",)  # tests/attach types this one, over jobs of its own.
# What each line comes to over the run of a job whose ranks failed with DDP106; explain, watch and stacks show, and judge nothing.
_CODES = {"report": 1, "explain": 0, "watch": 0, "stacks": 0, "doctor": None}


_FAILED, _HUNG = "03_ddp_device_ids_on_cpu", "08_all_reduce_against_broadcast"


@pytest.fixture(scope="module")
def work_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a folder with the run of a job, and with what the job has printed."""
    made: Dict[str, Path] = {}

    def get(job: str) -> Path:
        if job not in made:
            made[job] = _work(tmp_path_factory.mktemp("skill"), REPO / "tests" / "recorded" / "new" / job)
        return made[job]

    return get


def _work(folder: Path, recorded: Path) -> Path:
    shutil.copytree(str(recorded), str(folder / "ddp_probe_runs" / "one"))
    (folder / "ddp_probe_runs" / "latest").symlink_to("one")
    shutil.copy(str(recorded / "output.txt"), str(folder / "err1.log"))
    return folder


@pytest.mark.parametrize("line", [line for line in dict.fromkeys(_LINES) if not line.startswith(_ELSEWHERE + _LOOKS)])
def test_a_line_of_the_skill_does_what_it_says(
    line: str, work_of: Callable[[str], Path], run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]]
) -> None:
    """Each line, typed where the run is, answers with the exit code that the page gives it, and names the rule that it goes on with."""
    words = line.split()
    assert words[:3] == ["python", "-m", "ddp_probe"]
    done = run_python(words[1:], cwd=work_of(_HUNG if words[3] in ("watch", "stacks") else _FAILED), env=clean_env(COLUMNS="80"))
    code = _CODES[words[3]]
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stdout + done.stderr
    assert words[3] not in ("report", "explain") or re.search("DDP101" if words[-1] == "err1.log" else "DDP106", done.stdout)
    assert "--brief" not in words or len(done.stdout) <= 1500


def test_the_lines_that_are_typed_elsewhere_are_right() -> None:
    """The lines that other tests type are those of the README, and ones that the parser takes."""
    elsewhere = [line for line in _LINES if line.startswith(_ELSEWHERE)]
    assert len(elsewhere) == len(_ELSEWHERE)
    assert [line for line in elsewhere if line not in text("README.md")] == []
    assert [said for said in map(page_commands.complaint, page_commands.typed(text(PAGE))) if said] == []


def test_exit_codes_are_those_of_report() -> None:
    """The table has each exit code of report, with the word that its help begins with."""
    told: List[Any] = re.findall(r"^  (\d)  (\w+)", (report.__doc__ or "").partition("exit codes:")[2], re.M)
    table = dict(re.findall(r"^\| (\d) \| ([^|:]+)", text(PAGE), re.M))
    assert sorted(table) == sorted(code for code, _ in told)
    assert all(word in table[code] or code == "2" for code, word in told)


def test_the_head_of_the_skill() -> None:
    """The head names the skill as its folder is called, and says in one paragraph when to use it."""
    head = yaml.safe_load(text(PAGE).split("---")[1])
    assert head["name"] == (REPO / PAGE).parent.name
    assert 100 < len(head["description"]) <= 1024
