"""Forks, threads, signals and SIGKILL, each with real processes."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder

Make = Callable[..., Recorder]
Lines = Callable[[Any], List[Dict[str, Any]]]
Program = Callable[..., Any]
Files = Callable[[], List[Path]]


def test_eight_threads_write_a_thousand_lines_each(make: Make, lines_of: Lines) -> None:
    """Every line is whole, seq has each number once and in the file's order, and one file is opened."""
    recorder = make(max_bytes=1 << 24)
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        for number in range(500):
            recorder.begin(schema.ModuleMove(method="to", destination="cpu:%d" % number)).end()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = lines_of(recorder.path)
    assert [line["seq"] for line in lines] == list(range(8001))
    assert (recorder.lines, recorder.lost) == (8001, 0)
    spans = [line["span"] for line in lines[1:]]
    assert sorted(spans) == sorted([*range(1, 4001), *range(1, 4001)])


def test_a_signal_handler_that_logs_during_our_write(program: Program, files: Files, lines_of: Lines) -> None:
    """A handler that fires a probe hundreds of times a second neither deadlocks nor tears a line, the opening included."""
    done = program(
        """
import signal
recorder = make(max_bytes=1 << 30)
import itertools
signals, count = itertools.count(1), [0]  # counted by next(), as handlers interrupt each other
def handler(*_):
    count[0] = max(next(signals), count[0])
    recorder.warn("signal")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
written = 0
while count[0] < 300:
    recorder.begin(schema.Load(site=schema.Site("a.py", 1, "f"))).end()
    written += 2
signal.setitimer(signal.ITIMER_REAL, 0)
recorder.point(schema.SetDevice())
assert recorder.lines == len(open(recorder.path, "rb").read().splitlines())
print(written + next(signals) - 1, file=sys.stderr)
""".replace("make(", "make(echo='off', ")
    )
    assert done.returncode == 0, done.stderr
    (file,) = files()
    lines = lines_of(file)
    assert lines[0]["event"] == "process.start"
    assert sorted(line["seq"] for line in lines) == list(range(len(lines)))
    assert len(lines) == int(done.stderr) + 2


def test_a_process_killed_inside_a_call_ends_with_its_begin(tmp_path: Path, clean_env: Callable[..., Dict[str, str]], lines_of: Lines) -> None:
    """SIGKILL between begin and end leaves the begin line, whole, as the last one."""
    code = """
import os, signal
from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder
recorder = Recorder("run", lambda: "rank", {"rank": 0}, max_bytes=1 << 20, first=schema.ProcessStart)
recorder.begin(schema.Wrap(wrapper="DDP"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=clean_env(), check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    last = lines_of(tmp_path / "run" / "rank.jsonl")[-1]
    assert (last["event"], last["phase"], last["wrapper"]) == ("ddp.init", "begin", "DDP")


def test_a_fork_nobody_told_us_of_is_silent(program: Program, files: Files, lines_of: Lines) -> None:
    """A child that writes, ends its parent's span and warns leaves no line, no file and no word."""
    done = program("""
recorder = make()
span = recorder.begin(schema.Load())
if os.fork() == 0:
    recorder.point(schema.SetDevice())
    span.end()
    recorder.model("abc", [1])
    recorder.warn("child")
    os._exit(0 if recorder.disabled and recorder.lines == 0 and recorder.path is None else 1)
assert os.wait()[1] == 0
span.end()
""")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (file,) = files()
    assert [line["phase"] for line in lines_of(file)] == ["point", "begin", "end"]
    assert not (file.parent / "models").exists()


def test_a_promoted_child_starts_a_file_of_its_own(program: Program, files: Files, lines_of: Lines) -> None:
    """After forked() the child's file counts from 0 under its own pid; a span begun in the parent does not end in it."""
    done = program("""
recorder = make()
span = recorder.begin(schema.Load())
child = os.fork()
if child == 0:
    recorder.forked()
    assert recorder.path is None
    recorder.bind(rank=5)
    span.end()
    recorder.begin(schema.InitProcessGroup()).end()
    os._exit(0)
assert os.wait()[1] == 0
span.end()
print(os.getpid(), child, file=sys.stderr)
""")
    assert done.returncode == 0, done.stderr
    parent, child = done.stderr.split()
    found = {lines_of(file)[0]["pid"]: lines_of(file) for file in files()}
    assert [line["phase"] for line in found[int(parent)]] == ["point", "begin", "end"]
    theirs = found[int(child)]
    assert [(line["seq"], line["event"], line["rank"], line["pid"]) for line in theirs] == [
        (0, "process.start", 5, int(child)),
        (1, "dist.init_process_group", 5, int(child)),
        (2, "dist.init_process_group", 5, int(child)),
    ]
    assert len({line["span"] for line in theirs[1:]}) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of a fork with threads, which is the point here
def test_a_fork_in_the_middle_of_other_threads_writes(program: Program, files: Files, lines_of: Lines) -> None:
    """With four threads writing all the time, fifty forked children write at once: none hangs, and no line is torn."""
    done = program(
        """
import threading, signal, warnings
warnings.simplefilter("ignore")
recorder = make(max_bytes=1 << 30)
stop = []
def work():
    while not stop:
        recorder.begin(schema.Load()).end()
recorder.point(schema.SetDevice())  # a fork while another thread imports for the first time is Python's own hazard
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads: thread.start()
for number in range(50):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        if number % 2:
            recorder.forked()
        recorder.point(schema.SetDevice())
        recorder.point(schema.SetDevice())
        os._exit(0 if recorder.lines == (3 if number % 2 else 0) else 1)
    assert os.waitpid(child, 0)[1] == 0, number
stop.append(1)
for thread in threads: thread.join()
""",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    every = [lines_of(file) for file in files()]
    assert len(every) == 26
    for lines in every:
        assert [line["seq"] for line in lines] == list(range(len(lines)))
