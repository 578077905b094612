"""Tools that print for ever, fork, ignore signals or close their output: what is kept of them is bounded, and nothing of them runs on."""

import ast
import os
import sys
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Set, Tuple

import pytest
import shebang

from ddp_probe.doctor import card_tools, children
from ddp_probe.doctor.card_tools import CardTool
from ddp_probe.doctor.checks import vendor_tool
from ddp_probe.doctor.host import Host, Request
from ddp_probe.shared.child_process import ChildProcess

_PACKAGE = Path(children.__file__).resolve().parents[1]
_FOR_EVER = "while True:\n    os.write(1, b'x' * 65536)\n"
_TOOLS = {
    "prints for ever": _FOR_EVER,
    "prints for ever on stderr": _FOR_EVER.replace("write(1", "write(2"),
    "prints and forks": "if not os.fork():\n    note()\n" + _FOR_EVER,
    "forks into another session": "if not os.fork():\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n    note()\n" + _FOR_EVER,
    "ignores SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGPIPE, signal.SIG_IGN)\n" + _FOR_EVER,
}


def _note(path: Path) -> str:
    return "import os, signal, sys, time\ndef note():\n    with open(%r, 'a') as file:\n        file.write('%%d\\n' %% os.getpid())\nnote()\n" % str(
        path
    )


def _alive(path: Path) -> List[int]:
    return [pid for pid in map(int, path.read_text().split()) if _state(pid) not in ("", "Z", "X")]


def _state(pid: int) -> str:
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _gone(path: Path) -> bool:
    until = time.monotonic() + 20
    while _alive(path) and time.monotonic() < until:
        time.sleep(0.02)
    return not _alive(path)


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], Tuple[Dict[str, str], Path]]:
    """Return a function that puts a vendor's tool on a PATH of its own, with a file for temporary files that must stay empty."""

    def made(name: str, code: str) -> Tuple[Dict[str, str], Path]:
        pids, place = tmp_path / "pids", tmp_path / "bin"
        place.mkdir()
        (tmp_path / "tmp").mkdir()
        program = place / name
        program.write_text(shebang.of(sys.executable) + _note(pids) + code)
        program.chmod(0o755)
        return {"PATH": "%s:%s" % (place, os.environ["PATH"]), "TMPDIR": str(tmp_path / "tmp")}, pids

    return made


@pytest.mark.parametrize("kind", _TOOLS)
def test_a_tool_that_never_stops_printing_is_ended(kind, tool) -> None:
    """A tool that prints for ever is ended with its descendants once it has printed more than a tool may, and the state says so."""
    env, pids = tool("efsmi", _TOOLS[kind])
    state = CardTool(env).ask()
    assert state.problem == "efsmi printed more than 1048576 bytes."
    assert len(state.text or "") <= 4000
    assert _gone(pids)


def test_what_a_tool_prints_is_in_no_file(tool, tmp_path, monkeypatch) -> None:
    """While a tool prints, no file is open for it, wherever temporary files go."""
    env, _ = tool("efsmi", "os.write(1, b'x' * 60000)\ntime.sleep(600)\n")
    monkeypatch.setenv("TMPDIR", env["TMPDIR"])
    child = children.Child(["efsmi"], {**os.environ, **env})
    try:
        while not child.printed().out:
            child.poll()
        opened = [os.readlink("/proc/%d/fd/%d" % (child._process.pid, number)) for number in (1, 2)]
        assert [place.startswith("pipe:") for place in opened] == [True, True]
    finally:
        child.end()


def test_a_tool_that_closes_stdout_and_sleeps_is_ended_in_time(tool, monkeypatch) -> None:
    """A tool that has closed its output and runs on is ended at the time limit."""
    monkeypatch.setattr(card_tools, "SECONDS", 1.0)
    env, pids = tool("efsmi", "os.close(1)\nos.close(2)\ntime.sleep(600)\n")
    assert CardTool(env).ask().problem == "efsmi did not answer within 1 s."
    assert _gone(pids)


def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(tool) -> None:
    """A tool that has answered and ended is read, though a process that it left behind keeps its output open."""
    env, pids = tool("efsmi", "if not os.fork():\n    note()\n    time.sleep(600)\nprint('* 0  T20 | x | 32G D | 5.0%  W *')\n")
    state = CardTool(env).ask()
    assert (state.problem, [card.utilisation for card in state.cards]) == ("", [5.0])
    assert _gone(pids), "It was in the tool's session."


def test_doctor_says_that_a_tool_prints_too_much(tool, monkeypatch) -> None:
    """The check of the vendor's tool fails with the number of bytes, and does not blame the driver."""
    env, pids = tool("efsmi", _TOOLS["prints for ever"])
    monkeypatch.setattr(vendor_tool.cards, "accelerator", lambda host: next(each for each in card_tools.ACCELERATORS if each.smi == "efsmi"))
    answer = vendor_tool.check(Host(Request(seconds=60.0), env))
    assert answer.status == "fail"
    assert answer.saw == "efsmi printed more than 1048576 bytes, and was ended."
    assert _gone(pids)


def test_memory_of_the_reader_is_bounded() -> None:
    """However much a child prints, no more than its bound is kept, and a child within the bound is kept whole."""
    loud = ChildProcess([sys.executable, "-c", "import os\n" + _FOR_EVER], os.environ, most=100_000).wait(60)
    assert (loud.code, loud.why, loud.overflowed, len(loud.out)) == (None, "printed more than 100000 bytes", True, 100_000)
    quiet = ChildProcess([sys.executable, "-c", "print('x' * 99_999)"], os.environ, most=100_000).wait(60)
    assert (quiet.code, quiet.why, quiet.out) == (0, "", b"x" * 99_999 + b"\n")


_STARTS = {
    "subprocess": {"shared/child_process.py", "showing/pager.py"},
    "posix_spawn": {"traced/record/brief.py"},
    "exec": {"cli/run.py"},
}


def _starts() -> Iterator[Tuple[str, str]]:
    for file in sorted(_PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = str(file.relative_to(_PACKAGE))
            if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "subprocess" for alias in node.names):
                yield "subprocess", name
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "subprocess":
                yield "subprocess", name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                if node.attr in ("posix_spawn", "posix_spawnp", "popen", "system") or node.attr.startswith("spawn"):
                    yield "posix_spawn", name
                if node.attr.startswith("exec"):
                    yield "exec", name


def test_children_are_started_in_one_place_each() -> None:
    """The package starts programs in one module.

    Another one starts the launcher's reader of runs, which has a bound of its own, and a third one the pager,
    which has the terminal until a person ends it.
    """
    found: Dict[str, Set[str]] = {}
    for how, name in _starts():
        found.setdefault(how, set()).add(name)
    assert found == _STARTS
