"""However a program is left, its file says with which exit code, and nothing of that changes for the program."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest

# What is armed without torch is armed as with it.
_ARM = """
import os, pickle, sys, threading
from ddp_probe import activation
if os.environ.get("DDP_PROBE"):
    activation.session()
"""
_SWALLOW = "try:\n    sys.exit(4)\nexcept SystemExit:\n    print('caught')\n"
_WAYS: Dict[str, Tuple[str, Any]] = {
    "the last line": ("print('done')", 0),
    "exit": ("sys.exit()", 0),
    "exit 0": ("sys.exit(0)", 0),
    "exit 3": ("def main():\n    sys.exit(3)\nmain()", 3),
    "exit -1": ("sys.exit(-1)", 255),
    "a text": ("sys.exit('no such file')", 1),
    "a flag": ("import signal; sys.exit(signal.SIGINT)", 2),
    "an alias": ("from sys import exit\nexit(5)", 5),
    "caught": (_SWALLOW, 0),
    "a thread's": ("one = threading.Thread(target=sys.exit, args=(6,))\none.start()\none.join()", 0),
    "logged": ("try:\n    {}['key']\nexcept KeyError:\n    sys.exit(1)", 1),
    "uncaught": ("raise ValueError('loss is nan')", 1),
    "raised": ("raise SystemExit(4)", None),
    "raised below": ("def main():\n    raise SystemExit(4)\nmain()", None),
    "exit of site": ("def main():\n    exit(3)\nmain()", 3),
    "quit of site": ("def main():\n    quit(code=3)\nmain()", 3),
    "exit that hides": ("def main():\n    try:\n        open('weights.pth')\n    except OSError:\n        exit()\nmain()", 0),
    "exit at the end": ("exit()", 0),
    "exit that is caught": ("try:\n    {}['key']\nexcept KeyError:\n    try:\n        exit()\n    except SystemExit:\n        pass", 0),
    "finally": ("try:\n    sys.exit(7)\nfinally:\n    print('cleaned')", 7),
    "at once": ("os._exit(0)", 0),
    "at once 9": ("print('gone', flush=True)\nos._exit(9)", 9),
    "at once by name": ("os._exit(status=9)", 9),
    "not a number": ("try:\n    os._exit('0')\nexcept TypeError:\n    print('went on')", 0),
    "after an exception": ("import atexit\natexit.register(os._exit, 0)\nraise ValueError('loss is nan')", 0),
    "pickled": ("assert pickle.loads(pickle.dumps((sys.exit, os._exit))) == (sys.exit, os._exit)\nsys.exit(8)", 8),
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: Any, run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]]) -> Dict[str, Any]:
    """Each way to leave with and without the probe: the exit codes, what was printed, and the last line of the file."""
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "1"}

    root: Path = tmp_path_factory.mktemp("ways")  # Here, because two threads may not.

    def run(way: str) -> Dict[str, Any]:
        folder = root / way
        folder.mkdir()
        (folder / "job.py").write_text(_ARM + _WAYS[way][0] + "\n")
        plain = run_python([folder / "job.py"], env=armed(None, **place), cwd=folder)
        probed = run_python([folder / "job.py"], env=armed(folder / "runs", **place), cwd=folder)
        (file,) = [path for path in (folder / "runs").rglob("rank*.jsonl") if not path.parent.is_symlink()][:1]
        events = [json.loads(line) for line in file.read_text().splitlines()]
        return {"plain": plain, "probed": probed, "ends": [event for event in events if event["event"] == "process.end"], "events": events}

    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(_WAYS, pool.map(run, _WAYS)))


@pytest.mark.parametrize("way", _WAYS)
def test_the_file_says_the_exit_code(ends: Dict[str, Any], way: str) -> None:
    """The exit code of the last line is the process's own; it is unset after a SystemExit that nobody was told of, and never wrong."""
    end = ends[way]["ends"][-1]
    assert end.get("exit_code") == _WAYS[way][1]
    assert end.get("exit_code") in (None, ends[way]["probed"].returncode)
    assert not [event for event in ends[way]["events"] if event["event"] == "probe.fault"]


@pytest.mark.parametrize("way", _WAYS)
def test_nothing_changes_for_the_program(ends: Dict[str, Any], way: str) -> None:
    """Exit code, stdout and stderr are those of the program without the probe."""
    plain, probed = ends[way]["plain"], ends[way]["probed"]
    assert (probed.returncode, probed.stdout) == (plain.returncode, plain.stdout)
    assert re.sub("0x[0-9a-f]+", "", probed.stderr) == re.sub("0x[0-9a-f]+", "", plain.stderr)


def test_the_exception_behind_an_exit_is_told(ends: Dict[str, Any]) -> None:
    """The exception in whose handler sys.exit(1) was called is in the last line, with its place, and not called uncaught."""
    (end,) = ends["logged"]["ends"]
    assert (end["failure"]["type"], end["failure"]["raised_at"]["line"]) == ("KeyError", 7)
    assert "uncaught" not in end
    assert "failure" not in ends["exit 3"]["ends"][-1]


def test_the_start_tells_one_process_from_a_later_one(ends: Dict[str, Any]) -> None:
    """The first line says when the process was started, by the kernel's account."""
    start = ends["exit"]["events"][0]
    assert start["event"] == "process.start"
    assert start["born"] > 0
    assert start["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


# What is told of an exit call: its line in the program, its code, and the exception that was caught.
_CALLS: Dict[str, Tuple[int, int, str]] = {
    "exit 3": (7, 3, ""),
    "an alias": (7, 5, ""),
    "logged": (9, 1, "KeyError"),
    "exit of site": (7, 3, ""),
    "quit of site": (7, 3, ""),
    "exit that hides": (10, 0, "FileNotFoundError"),
}
_NO_CALL = (
    "the last line",
    "exit",
    "exit 0",
    "caught",
    "a thread's",
    "uncaught",
    "raised",
    "raised below",
    "at once 9",
    "exit at the end",
    "exit that is caught",
)


@pytest.mark.parametrize("way", [*_CALLS, *_NO_CALL])
def test_an_exit_call_has_its_line_and_what_it_hid(ends: Dict[str, Any], way: str) -> None:
    """An exit call with a code other than 0, or in an except clause, has a line of its own; no other end has one."""
    calls = [event for event in ends[way]["events"] if event["event"] == "process.exit"]
    caught = [call.get("caught", {"type": ""})["type"].rpartition(".")[2] for call in calls]
    told = [(call["site"]["line"], call["exit_code"], hidden) for call, hidden in zip(calls, caught)]
    assert told == ([_CALLS[way]] if way in _CALLS else [])


def test_what_runs_at_exit_comes_after_the_line(run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """A function that the job registered, and that never ends, does not keep the line of the exit call from the file."""
    text = "import atexit\natexit.register(os.kill, os.getpid(), 9)\n%s"
    (tmp_path / "job.py").write_text(_ARM + text % "try:\n    {}['key']\nexcept KeyError:\n    exit()\n")
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "1"}
    run_python([tmp_path / "job.py"], env=armed(tmp_path / "runs", **place), cwd=tmp_path)
    (file,) = [path for path in (tmp_path / "runs").rglob("rank*.jsonl") if not path.parent.is_symlink()]
    last = json.loads(file.read_text().splitlines()[-1])
    assert (last["event"], last["site"]["line"], last["caught"]["message"]) == ("process.exit", 11, "'key'")
