"""--color and links, as a terminal and a pipe get them from each command that paints."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from terminal import in_terminal

from ddp_probe.cli import commands

_LINK = re.compile(r"\x1b\]8;;([^\x1b]*)\x1b\\")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d UTC|\d+[dhm]\d\d[hms]")  # watch says what time it is, and since when a rank stands.
_JOB = "08_collective_on_rank0_only"
_BOTH = "import sys; from ddp_probe.cli import main; [main([name, *sys.argv[1:]]) for name in ('report', 'logs')]"
_PAINTING = [command.name for command in commands() if command.paints]
Env = Callable[..., Dict[str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> Path:
    """A recorded run whose job lies on this machine, in a folder with a hostile name."""
    root = tmp_path_factory.mktemp("job")
    source = root / "a\x1b]8;;evil\x1b\\b %7 \u202e" / "train.py"
    source.parent.mkdir()
    recorded = repo / "tests" / "recorded" / ("legacy" if sys.version_info < (3, 10) else "new") / _JOB
    shutil.copytree(recorded, root / "run")
    shutil.copy(repo / "tests" / "jobs" / (_JOB + ".py"), source)
    for file in (root / "run").iterdir():
        text = file.read_text(encoding="utf-8").replace("/train/%s.py" % _JOB, json.dumps(str(source))[1:-1])
        file.write_text(text, encoding="utf-8")
    return root / "run"


def _env(clean_env: Env, **extra: Any) -> Dict[str, str]:
    plain = dict.fromkeys(("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TMUX", "STY"))
    return clean_env(**{**plain, "TERM": "xterm-256color", "VTE_VERSION": "7200", "LC_ALL": "C.UTF-8", **extra})


def test_every_command_that_paints_takes_color(repo: Path) -> None:
    """A command says that it paints if it uses the styles of a page, and only then; each such command has --color."""
    for command in commands():
        text = (repo / "ddp_probe" / "cli" / (command.name + ".py")).read_text(encoding="utf-8")
        assert bool(re.search(r"\bpaint\.write\(|\bforms\.show\(|watch_live\.watch\(", text)) == (command.name in _PAINTING), command.name


@pytest.mark.parametrize(
    "command",
    [["report"], ["logs"], ["explain", "DDP627"], ["stacks", "--wait", "0"], ["watch", "--once"]],
    ids=" ".join,
)
def test_a_terminal_gets_links_and_the_same_text(clean_env: Env, run: Path, command: List[str]) -> None:
    """The lines of the job and of the logs lead to the files; without the escape sequences the text is that of --color never."""
    args = [*command, str(run)]
    seen, plain = (in_terminal([*args, "--color", when], _env(clean_env))[1] for when in ("auto", "never"))
    targets = {target for target in _LINK.findall(seen) if target}
    quoted = "a%1B%5D8%3B%3Bevil%1B%5Cb%20%257%20%E2%80%AE/train.py"
    assert any(target.endswith(quoted) for target in targets)
    assert all(re.fullmatch(r"file://[\w.%-]+/[A-Za-z0-9._~%/-]+", target) for target in targets)
    assert command[0] != "report" or any(target.endswith((".jsonl", ".ledger.txt")) for target in targets)
    assert _CLOCK.sub("", re.sub(r"\x1b\[[\d;]*m", "", _LINK.sub("", seen))) == _CLOCK.sub("", plain)
    assert "\x1b" not in plain


@pytest.fixture(scope="module")
def plain(run_python: Callable[..., Any], clean_env: Env, run: Path) -> str:
    """What a pipe gets without any option."""
    return str(run_python(["-c", _BOTH, run], env=_env(clean_env)).stdout)


@pytest.mark.parametrize(
    ("when", "extra", "coloured"),
    [("always", {"NO_COLOR": "1"}, True), ("never", {"FORCE_COLOR": "1"}, False), ("auto", {}, False), ("auto", {"FORCE_COLOR": "1"}, True)],
)
def test_a_pipe_gets_colours_if_it_asks_and_no_links(
    run_python: Callable[..., Any], clean_env: Env, run: Path, plain: str, when: str, extra: Dict[str, str], coloured: bool
) -> None:
    """always and FORCE_COLOR paint into a pipe, never does not; a pipe has no links, and its text is the same."""
    seen = run_python(["-c", _BOTH, run, "--color", when], env=_env(clean_env, **extra)).stdout
    assert ("\x1b[1;31m" in seen) is coloured
    assert "\x1b]8" not in seen
    assert re.sub(r"\x1b\[[\d;]*m", "", seen) == plain


def test_a_word_that_is_not_a_choice_is_refused(run_python: Callable[..., Any]) -> None:
    """--color takes auto, always or never; anything else is two lines and exit code 2."""
    done = run_python(["-m", "ddp_probe", "report", "--color", "sometimes"])
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 2)
