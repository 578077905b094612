"""stacks asks the ranks that run, takes what the others have left, and names who gave nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

# Answers each request once, as the watcher thread of a rank does.
_RANK = """
import json, os, sys, time
path, rank, folder, delay = sys.argv[1], int(sys.argv[2]), os.path.dirname(sys.argv[1]), float(sys.argv[3])
born = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
done = set()

def say(event):
    with open(path, "a") as log:
        log.write(json.dumps({**event, "phase": "point", "rank": rank, "ts": "2026-11-22T06:00:00.000000Z"}, separators=(",", ":")) + "\\n")

say({"event": "process.start", "pid": os.getpid(), "host": os.uname().nodename, "born": born})
while True:
    for name in os.listdir(folder + "/ask") if os.path.isdir(folder + "/ask") else ():
        number = int(name.rpartition(".")[2])
        if number not in done and delay >= 0:
            done.add(number)
            time.sleep(delay)
            frames = [{"file": "/job/train.py", "line": 40, "function": "main"}, {"file": "/job/train.py", "line": rank, "function": "wait"}]
            say({"event": "stacks", "request": number - 1, "threads": []})
            say({"event": "stacks", "request": number, "threads": [{"name": "MainThread", "main": True, "frames": frames}]})
    time.sleep(0.02)
"""
MAIN, STEP = "/job/train.py:40:main", "/job/train.py:31:epoch"


@pytest.fixture
def rank(folder: Path) -> Iterator[Callable[..., int]]:
    """Start a rank that answers after a delay, never if that is negative; return its pid."""
    started = []

    def start(number: int, delay: float = 0.0) -> int:
        path = folder / ("rank%05d.node1.%d.jsonl" % (number, number + 1))
        process = subprocess.Popen([sys.executable, "-c", _RANK, str(path), str(number), str(delay)])
        started.append(process)
        while not path.exists() or not path.read_bytes().endswith(b"\n"):
            time.sleep(0.01)
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def shown(run_python: Callable[..., Any], folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run the command on the run, with its output in a pipe."""
    return lambda *args: run_python(["-m", "ddp_probe", "stacks", str(folder), *args], cwd=tmp_path)


def test_running_ranks_are_asked_and_answer(rank: Any, shown: Any, folder: Path) -> None:
    """Each rank's answer to this very request is in the tree; a second command asks under the next number."""
    for number in range(3):
        rank(number)
    done = shown("--wait", "60")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "ranks 0-2 (3)",
        "  /job/train.py:40 main",
        *(line for number in range(3) for line in ("  rank %d" % number, "    /job/train.py:%d wait" % number)),
    ]
    assert shown("--wait", "60", "--rank", "1").stdout.splitlines()[0] == "rank 1"
    assert sorted(os.listdir(str(folder / "ask"))) == ["stacks.1", "stacks.2"]


def test_a_rank_that_does_not_answer_is_named(rank: Any, log: Any, event: Any, shown: Any) -> None:
    """A silent rank, a stopped one and one that is gone are said with what to do next; earlier stacks stand in for an answer."""
    rank(0)
    rank(1, -1.0)
    stopped = rank(2, -1.0)
    os.kill(stopped, signal.SIGSTOP)
    log(3)
    log(4, event("hang.suspected", [MAIN, STEP]))
    done = shown("--wait", "8")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "rank 4: stacks of a suspected hang, at 05:00:05 UTC" in text
    assert "rank 1 did not answer within 8 s: process " in text
    assert "rank 2 is stopped: process %d on " % stopped in text
    assert "'kill -CONT %d' there lets it go on" % stopped in text
    assert "rank 3 is gone without an end line, and left no stacks." in text
    assert text.count("next: ") == 3
    assert "ranks 0, 4" in text


def test_the_wait_ends_when_the_last_silent_rank_ends(rank: Any, shown: Any, log: Any, event: Any) -> None:
    """A rank that dies while it is waited for does not hold the command for the whole time."""
    log(0, event("hang.suspected", [MAIN]))
    pid = rank(1, -1.0)
    began = time.monotonic()
    killer = subprocess.Popen([sys.executable, "-c", "import os, time; time.sleep(1); os.kill(%d, 9)" % pid])
    done = shown("--wait", "50")
    killer.wait()
    assert time.monotonic() - began < 45
    assert "rank 1 is gone" in done.stdout


def test_stacks_of_an_ended_run_are_its_last_ones(log: Any, event: Any, shown: Any, folder: Path) -> None:
    """Of several suspected hangs the newest counts, a torn one does not, and a rank that moved on says so; nobody is asked."""
    first, last = event("hang.suspected", [MAIN], 5), event("hang.suspected", [MAIN, STEP], 9)
    for number in range(2):
        log(number, first, last, end=True)
    path = log(2, first, last, {"event": "hang.over", "phase": "point", "lasted": 9.0}, end=True)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"event":"hang.suspected","phase":"point","ts":"2026-11-22T05:00:59.000000Z","threads":[{"na')
    done = shown()
    assert done.stdout.splitlines() == [
        "ranks 0-2: stacks of a suspected hang, at 05:00:09 UTC; rank 2 moved on since",
        "ranks 0-2 (3)",
        "  /job/train.py:40 main",
        "  /job/train.py:31 epoch",
    ]
    assert not (folder / "ask").exists()


def test_the_text_of_faulthandler_stands_in(log: Any, shown: Any) -> None:
    """A rank whose native code held the lock has its stacks in a text file next to its log."""
    path = log(0)
    frames = '  File "/job/spin.py", line 3 in spin\n  File "/job/spin.py", line 9 in <module>\n'
    path.with_suffix(".stacks").write_text("Timeout (0:00:05)!\nThread 0x01 (most recent call first):\n" + frames, encoding="utf-8")
    assert shown().stdout.splitlines()[1:] == ["rank 0", "  /job/spin.py:9 <module>", "  /job/spin.py:3 spin"]
    assert "stacks of faulthandler, at " in shown().stdout


def test_raw_has_every_frame_of_every_thread(log: Any, event: Any, shown: Any) -> None:
    """--raw prints each rank with all threads; --threads adds the other threads to the tree."""
    for number in range(2):
        log(number, event("hang.suspected", [MAIN, STEP], others=["pin"]))
    lines = shown("--raw").stdout.splitlines()
    assert lines[:4] == [
        "rank 0, from a suspected hang at 05:00:05 UTC",
        "  thread MainThread (main)",
        "    /job/train.py:40 in main",
        "    /job/train.py:31 in epoch",
    ]
    assert lines[4] == "  thread pin"
    assert "thread pin, ranks 0-1" in shown("--threads").stdout
    assert "pin" not in shown().stdout


def test_a_file_for_flame_graphs_is_written(log: Any, event: Any, shown: Any, tmp_path: Path) -> None:
    """--folded writes each stack with its count and prints nothing; a path that cannot be written is an error with code 2."""
    for number in range(3):
        log(number, event("hang.suspected", [MAIN, STEP] if number else [MAIN]))
    done = shown("--folded", str(tmp_path / "folded"))
    assert (done.returncode, done.stdout) == (0, "")
    expected = "main (/job/train.py:40) 1\nmain (/job/train.py:40);epoch (/job/train.py:31) 2\n"
    assert (tmp_path / "folded").read_text(encoding="utf-8") == expected
    assert shown("--folded", "-").stdout == expected
    refused = shown("--folded", str(tmp_path / "none" / "folded"))
    assert (refused.returncode, "cannot be written" in refused.stderr) == (2, True)


def test_a_run_without_stacks_says_so(log: Any, shown: Any) -> None:
    """It exits with 2, says why the ranks gave none, and what to do."""
    for number in range(3):
        log(number, end=True)
    done = shown()
    assert (done.returncode, done.stdout) == (2, "")
    assert "why: Rank 0, and 2 other ranks: it has ended, and left no stacks." in done.stderr
    assert shown("--rank", "9").returncode == 2
    assert "is not a valid rank" in shown("--rank", "x").stderr


def test_a_thousand_ranks_print_ten_lines(log: Any, event: Any, shown: Any) -> None:
    """1 024 logs of a hang of which two ranks stand elsewhere are a tree of at most ten lines."""
    for number in range(1024):
        log(number, event("hang.suspected", [MAIN, STEP] if number not in (5, 700) else [MAIN, "/job/train.py:%d:other" % number]))
    lines = shown().stdout.splitlines()
    assert len(lines) <= 10
    assert "  ranks 0-4, 6-699, 701-1023 (1022)" in lines
