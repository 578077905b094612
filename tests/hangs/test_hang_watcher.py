"""The watcher in a rank: what it writes while a job hangs, what it answers, and what it leaves alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.shared import settings
from ddp_probe.traced.hangs.watcher import Hang, Requests

pytestmark = pytest.mark.slow
_PROGRAMS = Path(__file__).parent / "programs"
_HANG = _PROGRAMS / "one_sleeps.py"


def _line(words: str) -> int:
    """Return the number of the line of the program that says so of itself."""
    (found,) = [number for number, text in enumerate(_HANG.read_text().splitlines(), 1) if text.endswith("# " + words)]
    return found


def _events(root: Path, read_events: Callable[..., List[Dict[str, Any]]], name: str) -> List[List[Dict[str, Any]]]:
    logs = sorted({path.resolve() for path in root.glob("*/rank*.jsonl")})
    return [[event for event in read_events(path) if event["event"] == name] for path in logs]


def _after_init(root: Path, read_events: Callable[..., List[Dict[str, Any]]], name: str) -> List[List[Dict[str, Any]]]:
    """Return the events after each rank has joined the group: on a busy machine one waits for the other there for seconds, too."""
    joined = [events[-1]["mono_ns"] for events in _events(root, read_events, "dist.init_process_group")]
    return [[event for event in events if event["mono_ns"] > since] for events, since in zip(_events(root, read_events, name), joined)]


def _main_stack(event: Dict[str, Any]) -> List[Any]:
    (main,) = [thread for thread in event["threads"] if thread.get("main")]
    return [(Path(frame["file"]).name, frame["line"]) for frame in main["frames"]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("code", [0, 7])
def test_a_hang_is_told_with_its_lines_while_it_lasts(code: int, armed: Any, torchrun: Any, read_events: Any, tmp_path: Path) -> None:
    """Both ranks name their own line before the hang is over, the one in the collective with its number; then both say that it is over."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2")
    done = torchrun(_HANG, args=("9", str(code)), env=env, timeout=200)
    assert (done.returncode != 0) == (code != 0), done.stderr
    suspected, over = (_after_init(tmp_path / "runs", read_events, name) for name in ("hang.suspected", "hang.over"))
    assert [len(events) for events in over] == [1, 1]
    for events, (end,) in zip(suspected, over):
        assert events
        assert events[-1]["mono_ns"] < end["mono_ns"]
        assert end["suspected"] == len(events)
        assert end["lasted"] > events[-1]["since"] > 2
    waits, sleeps = suspected[0][0], suspected[1][0]
    assert (waits["operation"], waits["number"], waits["size"]) == ("all_reduce", 2, 2)
    assert ("one_sleeps.py", _line("the line of rank 0")) in _main_stack(waits)
    assert "operation" not in sleeps
    assert _main_stack(sleeps)[-1] == ("one_sleeps.py", _line("the line of rank 1"))


@pytest.fixture
def one_rank(armed: Any, run_python: Any, free_port: Any, tmp_path: Path) -> Callable[..., str]:
    """Run one of the functions of one_rank.py and return what it printed."""

    def run(*words: str, after: str = "1", seconds: float = 250) -> str:
        env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=after, RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", FREE_PORT=str(free_port()))
        env["DDP_PROBE_REPORT"] = "off"  # To join takes a busy machine longer than the shortest of these times, and a rank alone says so.
        done = run_python([str(_PROGRAMS / "one_rank.py"), *words], env=env, cwd=tmp_path, timeout=seconds)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return str(done.stdout)

    return run


def test_while_c_code_holds_the_gil_the_thread_does_not_beat(one_rank: Callable[..., str]) -> None:
    """The ledger's memory shows from outside since when no Python code has run; afterwards the log says for how long."""
    assert one_rank("holds_the_gil") == "stood\nresumed\nbeats\n"


def test_the_timer_of_faulthandler_is_the_jobs(one_rank: Callable[..., str]) -> None:
    """Its functions are not replaced, and a timer that the job sets fires as it would without us."""
    assert one_rank("sets_the_timer") == "fired\n"


def test_each_request_for_stacks_is_answered_once(one_rank: Callable[..., str]) -> None:
    """A file ask/stacks.N leads to one event with that number."""
    assert one_rank("answers") == "[1, 1]\n"


def test_the_thread_is_a_real_one_among_greenlets(one_rank: Callable[..., str]) -> None:
    """If the job has put greenlets in place of threads before it imports torch, the watcher's thread and its locks are the interpreter's own."""
    assert one_rank("answers", "among-greenlets") == "[1, 1]\n"


@pytest.mark.timeout(1600)  # All rounds take four minutes on two idle cores.
def test_forks_do_not_deadlock(one_rank: Callable[..., str], whole: bool) -> None:
    """Workers of a DataLoader and plain children, forked while the watcher looks 20 times a second, all end."""
    rounds = 500 if whole else 20  # Two workers each, and one child.
    assert one_rank("forks", str(rounds), after="0.2", seconds=250 if rounds == 20 else 1500) == "%d\n" % (8 * rounds)


def test_restore_takes_the_watcher_out(one_rank: Callable[..., str]) -> None:
    """After restore() its thread is gone, and its ledger does not beat any more."""
    assert one_rank("restores") == "True 0\n"


def test_the_thread_is_in_nobodys_way(one_rank: Callable[..., str]) -> None:
    """threading does not know of the thread, and a signal reaches the main thread."""
    assert one_rank("is_hidden") == "handled\n['MainThread']\n"


def test_a_standstill_is_told_at_growing_intervals() -> None:
    """It is due at the time that was asked for, twice, four times and eight times that; what moves again is told once, with the count."""
    hang = Hang(10.0)
    assert hang.over(5) is None
    due = []
    for since in range(100):
        if hang.is_due(float(since)):
            due.append(since)
            hang.pass_on(reported=True)
    assert due == [10, 20, 40, 80]
    assert hang.over(5) is None
    end: Any = hang.over(5 + 3 * 10**9)
    assert (end.suspected, end.lasted) == (4, 3.0)
    assert hang.over(9 * 10**9) is None


def test_old_requests_and_other_files_are_not_answered(tmp_path: Path) -> None:
    """What was asked before this process is not for it, and a name without a number is no request."""
    folder = tmp_path / "ask"
    folder.mkdir()
    (folder / "stacks.1").touch()
    requests = Requests(str(tmp_path))
    assert list(requests.new()) == []
    for name in ("stacks.2", "stacks.x", "other.3"):
        (folder / name).touch()
    assert list(requests.new()) == [2]
    assert list(requests.new()) == []


@pytest.mark.parametrize(("text", "seconds"), [("off", None), ("0", None), ("5", 5.0), ("2m", 120.0), ("", 60.0), ("soon", 60.0)])
def test_the_setting_is_seconds_or_off(text: str, seconds: Any) -> None:
    """A number of seconds, with a unit or without; off for nothing; what cannot be read counts as a minute."""
    assert settings.get(settings.HANG_AFTER, {"DDP_PROBE_HANG_AFTER": text}) == seconds


def test_a_round_costs_little() -> None:
    """What the thread does in a second in which nothing has happened is far below a thousandth of that second, on any machine that runs this."""
    requests, hang = Requests("/nowhere"), Hang(60.0)
    start = time.process_time()
    for _ in range(1000):
        hang.over(1)
        hang.is_due(0.5)
        requests.new()
    assert (time.process_time() - start) / 1000 < 0.001


def test_a_slow_job_is_told_each_time_that_it_goes_on(armed: Any, torchrun: Any, run_python: Any, read_events: Any, tmp_path: Path) -> None:
    """Each hang that is suspected while a healthy job evaluates, saves or compiles is over in the end; the job and its report are as without."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="1")
    done = torchrun(_PROGRAMS / "slow_phases.py", args=("3", "3", "4"), env=env, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("finished") == 2
    suspected, over = (_events(tmp_path / "runs", read_events, name) for name in ("hang.suspected", "hang.over"))
    for told, ends in zip(suspected, over):
        assert len(told) >= 3
        assert sum(end["suspected"] for end in ends) == len(told)
        assert max(event["mono_ns"] for event in told) < max(end["mono_ns"] for end in ends)
    report = run_python(["-m", "ddp_probe", "report", str(tmp_path / "runs")], env=env)
    assert (report.returncode, "clear" in report.stdout) == (0, True), report.stdout


def _waits_for_a_stopped_one(root: Path, read_events: Callable[..., List[Dict[str, Any]]]) -> bool:
    """Tell whether rank 1 is stopped, and rank 0 has told that it waits for it in the second collective."""
    starts = _events(root, read_events, "process.start")
    if len(starts) < 2 or not all(starts):
        return False
    state = Path("/proc/%d/stat" % starts[1][0]["pid"]).read_text().rpartition(")")[2].split()[0]
    return state == "T" and any(event.get("number") == 2 for event in _events(root, read_events, "hang.suspected")[0])


def test_a_stopped_process_is_told_while_the_job_hangs(armed: Any, run_python: Any, read_events: Any, free_port: Any, tmp_path: Path) -> None:
    """The report names the rank whose process is stopped, its state and the signal that lets it go on; after that signal the job ends well."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2")
    where = ["--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
    job = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *where, str(_PROGRAMS / "one_stops.py")], env=env, cwd=tmp_path)
    try:
        end = time.monotonic() + 200
        while not _waits_for_a_stopped_one(tmp_path / "runs", read_events):
            assert time.monotonic() < end
            assert job.poll() is None
            time.sleep(0.1)
        time.sleep(0.5)  # The report asks for two seconds of waiting, and the rank has told it at that moment.
        told = json.loads(run_python(["-m", "ddp_probe", "report", "--json", str(tmp_path / "runs")], env=env).stdout)
        (pid,) = {event["pid"] for event in _events(tmp_path / "runs", read_events, "process.start")[1]}
        os.kill(pid, signal.SIGCONT)
        assert job.wait(100) == 0
    finally:
        job.kill()
        job.wait()
    (finding,) = told["findings"]
    assert (finding["slug"], finding["ranks"]) == ("rank-does-not-run", [1])
    assert "process %d is in state T" % pid in finding["verdict"]
    assert "kill -CONT %d" % pid in finding["remedy"]
