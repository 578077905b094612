"""A report that is longer than the terminal: its last line, the pager, and files that are written instead."""

import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from terminal import in_terminal

_PAGER = "import sys; text = sys.stdin.read(); print('PAGED', len(text.splitlines())); print(text, end='')"
_SUM = "DDP629 rank-missing-from-collective  ranks 0-1  pieces.py:35  Compare the pat..."


@pytest.fixture
def run(repo: Path) -> str:
    """A recorded run whose report has 37 lines."""
    return str(repo / "tests/recorded/new/08_uneven_batches")


@pytest.fixture
def env(clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> Dict[str, str]:
    """An environment in which the pager says that it was used."""
    script = tmp_path / "pager.py"
    script.write_text(_PAGER, encoding="utf-8")
    unset = {"CI": None, "LINES": None, "COLUMNS": None}
    return clean_env(PAGER="%s %s" % (sys.executable, script), TERM="xterm", NO_COLOR="1", **unset)


def test_a_long_report_goes_through_the_pager(run: str, env: Dict[str, str]) -> None:
    """The pager gets the whole page, the verdict at its top and the sum at its end; the exit code stays."""
    code, screen = in_terminal(["report", run], env, 80, 24)
    lines = screen.splitlines()
    assert (code, lines[0].split()[0]) == (1, "PAGED")
    assert int(lines[0].split()[1]) == len(lines) - 1
    assert lines[3].startswith("DDP629 rank-missing-from-collective")
    assert lines[-2:] == ["", _SUM]


def test_an_interrupt_is_for_the_pager(run: str, env: Dict[str, str], tmp_path: Path) -> None:
    """Ctrl-C in a pager does not end the report, which would leave the pager alone with the terminal."""
    script = tmp_path / "interrupted.py"
    interrupt = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(0.5); print('STILL THERE')"
    script.write_text("import sys; sys.stdin.read()\n%s\n" % interrupt, encoding="utf-8")
    code, screen = in_terminal(["report", run], {**env, "PAGER": "%s %s" % (sys.executable, script)}, 80, 24)
    assert (code, screen.split()) == (1, ["STILL", "THERE"])


def test_a_pager_may_end_before_it_has_read_all(run: str, env: Dict[str, str]) -> None:
    """Of a page that nobody reads to its end, no error is printed."""
    code, screen = in_terminal(["report", run], {**env, "PAGER": "true"}, 80, 24)
    assert (code, screen.strip()) == (1, "")


@pytest.mark.parametrize("how", ["option", "empty", "cat", "pipeline", "dumb", "absent", "open quotation"])
def test_a_report_without_a_pager_ends_with_its_sum(run: str, env: Dict[str, str], how: str) -> None:
    """With each way to turn the pager off, the page is printed, and the sum is in view."""
    changes = {
        "option": ("PAGER", env["PAGER"]),
        "empty": ("PAGER", ""),
        "cat": ("PAGER", "cat"),
        "absent": ("PAGER", "no-such-pager"),
        "open quotation": ("PAGER", "less '"),
        "pipeline": ("CI", "true"),
        "dumb": ("TERM", "dumb"),
    }
    name, value = changes[how]
    words = ["report", run, *(["--no-pager"] if how == "option" else [])]
    code, screen = in_terminal(words, {**env, name: value}, 80, 24)
    assert (code, screen.splitlines()[-1]) == (1, _SUM)
    assert "PAGED" not in screen


def test_a_report_that_fits_has_neither(run: str, env: Dict[str, str]) -> None:
    """On 60 lines the verdict is on the screen: nothing is printed twice."""
    _, screen = in_terminal(["report", run], env, 80, 60)
    assert "PAGED" not in screen
    assert _SUM not in screen


def test_the_sum_is_in_the_language_of_the_reader(run: str, env: Dict[str, str]) -> None:
    """It names the rule, the ranks, the place and the change in Chinese, within the width."""
    _, screen = in_terminal(["report", "--no-pager", run], {**env, "DDP_PROBE_LANG": "zh"}, 80, 24)
    words = screen.splitlines()[-1].split("  ")
    assert words[:3] == ["DDP629 rank-missing-from-collective", "rank 0-1", "pieces.py:35"]
    assert words[3].startswith("比较两边的路径")


@pytest.mark.parametrize("option", ["--html", "--trace"])
def test_a_written_file_comes_last(run: str, env: Dict[str, str], tmp_path: Path, option: str) -> None:
    """In a terminal, only the sum stands above where the file is."""
    place = tmp_path / "page"
    code, screen = in_terminal(["report", option, str(place), run], env, 80, 24)
    lines = screen.splitlines()
    assert (code, len(lines), lines[0]) == (1, 2, _SUM)
    assert lines[1].startswith("Written: %s, " % place)


def test_a_pipe_has_neither(run: str, env: Dict[str, str], run_python: Callable[..., Any]) -> None:
    """What a program reads is the page as it was."""
    page = run_python(["-m", "ddp_probe", "report", run], env=env).stdout
    assert "PAGED" not in page
    assert page.splitlines()[-1].startswith("  ranks    2 expected")
