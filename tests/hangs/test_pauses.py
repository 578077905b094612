"""A pause is not a hang: ranks and launchers are stopped and let go on, frozen, and given clocks that jump."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from schedule import seed

from ddp_probe.traced.hangs import daemon as daemons
from ddp_probe.traced.hangs.daemon import Daemon, Pauses

pytestmark = pytest.mark.slow
_BUSY = Path(__file__).parent / "programs" / "busy.py"
_STOPPED = ("T", "t")


class _Job:
    """A job that computes, with its output in files."""

    def __init__(self, command: List[str], env: Dict[str, str], folder: Path, ranks: int) -> None:
        self._folder = folder
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            self.process = subprocess.Popen(command, env=env, cwd=folder, stdout=out, stderr=err, start_new_session=True)
        until(lambda: (folder / "out").read_text().count("busy") == ranks, self.process)

    @property
    def said(self) -> List[str]:
        """Return what the probe has said on stderr."""
        return [line for line in (self._folder / "err").read_text().splitlines() if "ddp_probe" in line]

    def end(self) -> Tuple[int, str]:
        """Let it end; return its exit code and what it printed."""
        (self._folder / "end").touch()
        return self.process.wait(100), (self._folder / "out").read_text()


def until(ready: Callable[[], bool], process: "subprocess.Popen[Any]") -> None:
    """Wait until this is so, while the process runs."""
    end = time.monotonic() + 200
    while not ready():
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)


def _state(pid: int) -> str:
    return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]


def _paused(pids: Tuple[int, ...], seconds: float, order: Tuple[int, ...], process: "subprocess.Popen[Any]") -> None:
    """Stop processes in one order, and let them go on in another one after this time."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: all(_state(pid) in _STOPPED for pid in pids), process)
    time.sleep(seconds)
    for pid in order:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def job(armed: Any, free_port: Any, tmp_path: Path) -> Iterator[Callable[..., _Job]]:
    """Start a job of one rank, or of several below torchrun, that says when a rank has not moved for so many seconds."""
    started: List[_Job] = []

    def start(after: str, ranks: int = 1, prefix: Tuple[str, ...] = ()) -> _Job:
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", **where} if ranks == 1 else {}
        env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=after, **alone)
        launcher = ["-m", "torch.distributed.run", "--nproc_per_node=%d" % ranks, *("--%s=%s" % (k.lower(), v) for k, v in where.items())]
        command = [*prefix, sys.executable, *(launcher if ranks > 1 else []), str(_BUSY)]
        started.append(_Job(command, env, tmp_path, ranks))
        return started[-1]

    yield start
    for each in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(each.process.pid, signal.SIGCONT)
            os.killpg(each.process.pid, signal.SIGKILL)
        each.process.wait()


def _events(tmp_path: Path, read_events: Any, name: str) -> List[Dict[str, Any]]:
    logs = sorted({path.resolve() for path in (tmp_path / "runs").rglob("*.jsonl")})
    return [event for log in logs for event in read_events(log) if event["event"] == name]


def _too_early(suspected: List[Dict[str, Any]], resumed: List[Dict[str, Any]], after: float) -> List[Dict[str, Any]]:
    """Return what was said soon after a pause: on a machine without a free core, a rank may truly not move for a fifth of a second."""
    ends = [event["mono_ns"] for event in resumed]
    return [event for event in suspected if any(0 <= event["mono_ns"] - end < after / 2 * 1e9 for end in ends)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("after", "long"), [("0.2", 0.3), ("1", 1.3), ("5", 5.5)])
def test_a_busy_rank_survives_pauses(after: str, long: float, job: Any, whole: bool, read_events: Any, tmp_path: Path) -> None:
    """A rank that is paused again and again while it computes, also for longer than DDP_PROBE_HANG_AFTER, goes on, and is never said to hang."""
    busy, chance = job(after), random.Random(seed())
    pauses = 100 if whole else 20
    for number in range(pauses):
        seconds = long if long < 1 or number % 10 == 5 else 0.3
        _paused((busy.process.pid,), seconds, (busy.process.pid,), busy.process)
        time.sleep(chance.uniform(0.02, 0.2))
        assert busy.process.poll() is None, "died in pause %d" % number
    code, printed = busy.end()
    assert (code, printed) == (0, "busy\nended\n")
    assert busy.said == []
    resumed = _events(tmp_path, read_events, "process.resumed")
    assert _too_early(_events(tmp_path, read_events, "hang.suspected"), resumed, float(after)) == []
    assert len(resumed) >= (pauses // 2 if long < 1 else pauses // 10)
    assert max(event["lasted"] for event in resumed) >= long / 2


_ORDERS = [(whom, first, last) for whom in ("launcher", "ranks") for first, last in [("", "")]]
_ORDERS += [("all", first, last) for first, last in itertools.product(("launcher", "ranks"), repeat=2)]


@pytest.mark.timeout(900)
def test_pauses_in_any_order_are_no_hang(job: Any, run_python: Any, read_events: Any, whole: bool, tmp_path: Path) -> None:
    """Whoever is stopped for longer than DDP_PROBE_HANG_AFTER, and whoever goes on first: neither stderr nor a report says that something hangs."""
    busy = job("2", ranks=2)
    launcher = busy.process.pid
    ranks = tuple(int(pid) for path in Path("/proc/%d/task" % launcher).glob("*/children") for pid in path.read_text().split())
    assert len(ranks) == 2
    for whom, first, last in _ORDERS * (5 if whole else 1):
        whose = {"launcher": (launcher,), "ranks": ranks, "all": (launcher, *ranks) if first == "launcher" else (*ranks, launcher)}[whom]
        back = whose if whom != "all" or first == last else whose[::-1]
        _paused(whose, 4.5, back, busy.process)
        time.sleep(0.4)
        told = run_python(["-m", "ddp_probe", "report", tmp_path / "runs"], timeout=100)
        assert told.returncode != 1, (whom, first, last, told.stdout)
        time.sleep(1.8)
        assert busy.said == [], (whom, first, last)
    code, printed = busy.end()
    assert (code, printed.count("ended")) == (0, 2)
    assert busy.said == []
    assert _events(tmp_path, read_events, "launcher.hang") == []
    assert _too_early(_events(tmp_path, read_events, "hang.suspected"), _events(tmp_path, read_events, "process.resumed"), 2.0) == []
    assert {event.get("rank") for event in _events(tmp_path, read_events, "process.resumed")} == {None, 0, 1}
    told = run_python(["-m", "ddp_probe", "report", tmp_path / "runs"], timeout=100)
    assert told.returncode == 0, told.stdout


@pytest.fixture
def freezer() -> Iterator[Tuple[Path, str, str, str]]:
    """Make a control group that can be frozen: its folder, the file, and what freezes it and lets it go on."""
    folder, file, on, off = Path("/sys/fs/cgroup/ddp_probe_freezer_%d" % os.getpid()), "cgroup.freeze", "1", "0"
    if Path("/sys/fs/cgroup/freezer").is_dir():
        folder, file, on, off = Path("/sys/fs/cgroup/freezer") / folder.name, "freezer.state", "FROZEN", "THAWED"
    try:
        folder.mkdir()
    except OSError as exc:
        pytest.skip("no control group can be made: %s" % exc)
    try:
        if not (folder / file).exists():
            pytest.skip("the kernel has no freezer: no %s" % file)
        yield folder, file, on, off
    finally:
        (folder / file).exists() and (folder / file).write_text(off)
        for _ in range(100):
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def test_a_frozen_container_is_no_hang(freezer: Any, job: Any, read_events: Any, run_python: Any, tmp_path: Path) -> None:
    """While the ranks of a launcher are frozen, as docker pause does it, and afterwards, nobody says that they hang."""
    folder, file, on, off = freezer
    busy = job("1", ranks=2)
    ranks = [pid for path in Path("/proc/%d/task" % busy.process.pid).glob("*/children") for pid in path.read_text().split()]
    for pid in ranks:
        (folder / "cgroup.procs").write_text(pid)
    for seconds in (1.5, 3.5, 6.0):
        (folder / file).write_text(on)
        time.sleep(seconds)
        (folder / file).write_text(off)
        time.sleep(1.5)
    code, printed = busy.end()
    assert (code, printed.count("ended")) == (0, 2)
    assert busy.said == []
    assert _events(tmp_path, read_events, "launcher.hang") == []
    assert run_python(["-m", "ddp_probe", "report", tmp_path / "runs"]).returncode == 0


@pytest.mark.parametrize("ahead", [(864000, 0), (0, 864000), (5, 864000)])
def test_clocks_that_differ_are_no_pause(ahead: Tuple[int, int], job: Any, read_events: Any, tmp_path: Path) -> None:
    """A host that has slept for days since its start has a clock that counts that and one that does not: neither is a pause of the rank."""
    prefix = ("unshare", "--time", "--monotonic=%d" % ahead[0], "--boottime=%d" % ahead[1], "--fork", "--kill-child")
    with contextlib.suppress(OSError):
        if subprocess.run([*prefix, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            busy = job("1", prefix=prefix)
            time.sleep(2)
            assert busy.end()[0] == 0
            assert busy.said == _events(tmp_path, read_events, "process.resumed") == _events(tmp_path, read_events, "hang.suspected") == []
            return
    pytest.skip("unshare --time fails here: it needs root and a kernel with time namespaces")


def test_a_clock_that_jumps_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that sleeps for ten minutes wakes with its clock ahead by that: what has not moved is counted from there, and told once."""
    looks: List[Tuple[float, Any, float]] = []
    ahead, slept = [0.0], daemons.by_boot
    monkeypatch.setattr(daemons, "by_boot", lambda: slept() + ahead[0])
    pauses, moved = Pauses(60.0), time.monotonic_ns() - 50 * 10**9

    def look() -> None:
        resumed: Any = pauses.resumed(daemon)
        looks.append((daemon.late, resumed, pauses.counted(moved, daemon.woke)))
        ahead[0] = 600.0 if len(looks) >= 3 else 0.0
        daemon.ending = len(looks) == 6

    daemon = Daemon(look, 0.05)
    daemon.start()
    daemon._ended.acquire(timeout=60)
    (event,) = [resumed for _, resumed, _ in looks if resumed is not None]
    assert looks[3][1] is event
    assert 600 <= event.lasted < 630
    assert looks[2][2] >= 50
    assert looks[5][2] < 30
