"""A process of a log runs still only if the one that has its pid is the same one, and no zombie."""

import json
import os
import platform
import subprocess
import sys
import time
from typing import Any, Iterator

import pytest

from ddp_probe.reading.load_run import from_lines
from ddp_probe.reading.model import Run

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only Linux tells when a process was started")


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


def _born(pid: int) -> int:
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def _boot() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
        return file.read().strip()


def _read(pid: int, ts: float, **more: Any) -> Run:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(ts))
    start = {"event": "process.start", "rank": 0, "world_size": 1, "role": "rank", "pid": pid, "host": platform.node(), "ts": stamp}
    return from_lines(json.dumps({**start, **more}))


def test_the_same_process_runs(child: "subprocess.Popen[bytes]") -> None:
    """A pid whose process was started when the log says is running."""
    assert _read(child.pid, time.time(), born=_born(child.pid), boot=_boot()).running == {0}


def test_a_later_process_of_the_same_pid_is_another_one(child: "subprocess.Popen[bytes]") -> None:
    """A pid that the kernel has given to another process, or a pid of before the host's last start, runs no longer."""
    assert _read(child.pid, time.time(), born=_born(child.pid) - 1, boot=_boot()).running == set()
    assert _read(child.pid, time.time(), born=_born(child.pid), boot="another").running == set()


def test_a_log_without_a_start_time_is_older_than_what_came_later(child: "subprocess.Popen[bytes]") -> None:
    """A log of an older probe whose first line was written before the process was started is not that process's."""
    assert _read(child.pid, time.time() - 3600).running == set()
    assert _read(child.pid, time.time() + 60).running == {0}


def test_a_process_just_killed_runs_no_longer(child: "subprocess.Popen[bytes]") -> None:
    """A process that was killed and that nobody has waited for keeps its pid, and does not run."""
    born = _born(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert _read(child.pid, time.time(), born=born, boot=_boot()).running == set()
