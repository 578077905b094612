"""The watcher in a rank: what it writes while a job hangs, what it answers, and what it leaves alone."""

import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe import settings
from ddp_probe.hangs.watcher import Hang, Requests

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


def _main_stack(event: Dict[str, Any]) -> List[Any]:
    (main,) = [thread for thread in event["threads"] if thread.get("main")]
    return [(Path(frame["file"]).name, frame["line"]) for frame in main["frames"]]


@pytest.mark.parametrize("code", [0, 7])
def test_a_hang_is_told_with_its_lines_while_it_lasts(code: int, armed: Any, torchrun: Any, read_events: Any, tmp_path: Path) -> None:
    """Both ranks name their own line before the hang is over, the one in the collective with its number; then both say that it is over."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2")
    done = torchrun(_HANG, args=("9", str(code)), env=env, timeout=200)
    assert (done.returncode != 0) == (code != 0), done.stderr
    suspected, over = (_events(tmp_path / "runs", read_events, name) for name in ("hang.suspected", "hang.over"))
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

    def run(*words: str, after: str = "1") -> str:
        env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=after, RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", FREE_PORT=str(free_port()))
        done = run_python([str(_PROGRAMS / "one_rank.py"), *words], env=env, cwd=tmp_path, timeout=250)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return str(done.stdout)

    return run


def test_the_timer_writes_what_the_thread_cannot(one_rank: Callable[..., str]) -> None:
    """While C code holds the GIL, the stacks with the line that called it are in the file beside the log."""
    assert one_rank("holds_the_gil") == "written\n"


def test_the_timer_of_the_job_stays_the_jobs(one_rank: Callable[..., str]) -> None:
    """A timer that the job sets after ours fires as it would without us; once the job has cancelled it, ours works again."""
    assert one_rank("sets_the_timer") == "fired\nwritten\n"


def test_each_request_for_stacks_is_answered_once(one_rank: Callable[..., str]) -> None:
    """A file ask/stacks.N leads to one event with that number."""
    assert one_rank("answers") == "[1, 1]\n"


def test_forks_do_not_deadlock(one_rank: Callable[..., str]) -> None:
    """Workers of a DataLoader and plain children, forked while the watcher looks 20 times a second, all end, also by faulthandler's own end."""
    assert one_rank("forks", "20", after="0.2") == "160\n"


def test_restore_takes_the_watcher_out(one_rank: Callable[..., str]) -> None:
    """After restore() its thread and the timer's are gone, faulthandler's function is the original, and no empty file stays."""
    assert one_rank("restores") == "True True []\n"


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
            hang.pass_on(told=True)
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
