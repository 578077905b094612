"""report --follow prints each change in a running job once, and ends with it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

pytestmark = pytest.mark.slow

# Writes the lines of a recorded rank as its own, at a pace, and exits. After the first line it waits for a file, if one is named.
_RANK = """
import json, os, sys, time
out, rank, pause, awaited = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
name = "%s/rank%05d.%s.%d.jsonl" % (out, rank, os.uname().nodename, os.getpid())
with open(name, "w") as stream:
    for line in sys.stdin:
        event = json.loads(line)
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        event.update(rank=rank, local_rank=rank, pid=os.getpid(), host=os.uname().nodename, ts=now, mono_ns=time.monotonic_ns())
        for name in ("born", "boot"):  # Those of the recorded process.
            event.pop(name, None)
        if event["event"] == "process.start":  # The recorded rank's ledger is not written again.
            event["environment"]["DDP_PROBE_LEDGER"] = "off"
        if event["event"] == "process.end":
            event.setdefault("exit_code", 0)
        stream.write(json.dumps(event) + "\\n")
        stream.flush()
        time.sleep(pause)
        while awaited and not os.path.exists(awaited):
            time.sleep(0.01)
"""


def _recorded(repo: Path, job: str, rank: int) -> str:
    return sorted((repo / "tests" / "recorded" / "new" / job).glob("rank*.jsonl"))[rank].read_text(encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path, repo: Path) -> Any:
    """Start ranks that replay a recorded rank at a pace."""
    started: List[subprocess.Popen[str]] = []

    def start(name: str, folder: Path, pause: float, ranks: int = 2, awaited: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(ranks):
            words = [str(folder), str(rank), str(pause), awaited]
            process = subprocess.Popen([sys.executable, "-c", _RANK, *words], stdin=subprocess.PIPE, text=True)
            assert process.stdin is not None
            process.stdin.write(_recorded(repo, name, rank))
            process.stdin.close()
            started.append(process)
        while sum(file.read_bytes().endswith(b"\n") for file in folder.glob("rank*.jsonl")) < ranks:  # They are there before anybody looks.
            assert all(process.poll() in (None, 0) for process in started)
            time.sleep(0.01)

    yield start
    for process in started:
        process.kill()
        process.wait()


def _follow(args: List[str], env: Dict[str, str]) -> "subprocess.Popen[str]":
    # A shell starts what it runs in the background with SIGINT ignored, and that is inherited.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom ddp_probe.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "report", "--follow", *args]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_prints_what_changes_and_ends_with_the_job(tmp_path: Path, job: Any, clean_env: Callable[..., Dict[str, str]]) -> None:
    """In a pipe each new line comes once, with its time; the whole report follows when the ranks are gone; the exit code is the report's."""
    job("03_submodule_left_behind", tmp_path / "run", 0.3, awaited=str(tmp_path / "looked"))
    process = _follow([str(tmp_path / "run")], clean_env())
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    (tmp_path / "looked").touch()
    lines = [first.rstrip("\n"), *process.stdout.read().splitlines()]
    err = process.stderr.read()
    process.wait()
    stamped = [line for line in lines if " UTC  " in line]
    assert (process.returncode, err) == (1, "")
    assert "undecided because" in stamped[0]
    assert sum("DDP104 submodule-left-behind [ranks 0-1]:" in line for line in stamped) == 1
    assert len(stamped) == len({line.split(" UTC  ")[1] for line in stamped})
    assert "DDP104 submodule-left-behind  ranks 0-1" in lines[len(stamped) :]


def test_it_waits_for_the_first_run(tmp_path: Path, job: Any, clean_env: Callable[..., Dict[str, str]]) -> None:
    """Without a run it waits until there is one; --brief prints lines alone."""
    process = _follow(["--brief"], clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")))
    time.sleep(2)
    assert process.poll() is None
    job("00_healthy_cards", tmp_path / "runs" / "one", 0.01)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1].endswith("clear: ranks 0-1 finished normally, and no rule found a problem.")


def test_json_is_an_object_a_line(tmp_path: Path, job: Any, clean_env: Callable[..., Dict[str, str]]) -> None:
    """With --json each change is one object on a line; the last one is the last report."""
    job("03_submodule_left_behind", tmp_path / "run", 0.2)
    process = _follow(["--json", str(tmp_path / "run")], clean_env())
    out, _ = process.communicate(timeout=90)
    told = [json.loads(line) for line in out.splitlines()]
    assert [report["verdict"] for report in told][-1] == "found"
    assert told[-1]["inventory"]["ends"] == {"failed ValueError": [0, 1]}
    assert process.returncode == 1


def test_ctrl_c_ends_it(tmp_path: Path, job: Any, clean_env: Callable[..., Dict[str, str]]) -> None:
    """An interrupt ends the following of a job that still runs, without a traceback; the code is that of Ctrl-C, and no verdict's."""
    job("00_healthy_cards", tmp_path / "run", 5)
    process = _follow(["--brief", str(tmp_path / "run")], clean_env())
    assert process.stdout is not None
    assert "undecided because" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")


_READS = """
import sys
from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
for number in range(10):
    judge(load([sys.argv[1]]))
    if number in (3, 9):
        with open("/proc/self/statm") as stream:
            print(stream.read().split()[1])
"""


def test_it_does_not_grow(many: Callable[..., Path], run_python: Callable[..., Any]) -> None:
    """A run of failing ranks that is read again and again takes no more memory the tenth time than the fourth."""
    done = run_python(["-c", _READS, str(many(100, range(100)))])
    fourth, tenth = map(int, done.stdout.split())
    assert tenth < fourth * 1.15, done.stdout


_SLEEPS = """
import os, sys, time
from ddp_probe.showing import follow
folder, follow._PAUSE = sys.argv[1], float(sys.argv[2])
slept, grown = [], sorted(os.listdir(folder))[0]
def sleep(span):
    slept.append(span)
    if len(slept) == 6:
        print(min(slept), sum(slept), time.process_time() - began)
        raise KeyboardInterrupt
    with open(os.path.join(folder, grown), "a") as stream:
        stream.write('{"event":"checkpoint.save","phase":"point","rank":0}\\n')
time.sleep = sleep
began = time.process_time()
follow.follow([folder], "brief")
"""


@pytest.mark.parametrize(("ranks", "pause"), [(128, 0.0), (2, 1.0)])
def test_it_takes_a_fifth_of_a_core_at_most(many: Callable[..., Path], run_python: Callable[..., Any], ranks: int, pause: float) -> None:
    """Over files that grow before each look, following sleeps four times as long as it computes, and never shorter than its pause."""
    folder = many(ranks)
    for file in folder.iterdir():  # Without its last line a rank may still run.
        file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    done = run_python(["-c", _SLEEPS, folder, pause])
    shortest, slept, cpu = map(float, done.stdout.splitlines()[-1].split())
    assert shortest >= pause, done.stdout + done.stderr
    assert 3.8 * cpu < slept < max(4.2 * cpu, 6.1 * pause), done.stdout + done.stderr
