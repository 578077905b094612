"""Checks whether a logged process still runs on this host. The pid alone is not enough: it may belong to a new process or to a zombie."""

import os
import platform
from functools import lru_cache
from typing import Optional

from ddp_probe.reading import bundled
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.proc_files import GONE, Stat, stat, text

_SLACK = 2.0  # How many seconds the kernel's start time may be after the first line of the same process.


def alive(process: LoggedProcess) -> bool:
    """Return whether the process still runs, as far as this host knows; of a bundle: whether it ran when that was made."""
    if process.state is not None:
        return process.end is None and process.death is None and bool(process.state)
    bundle = bundled.current()
    if bundle is not None:
        return process.end is None and process.death is None and bool(bundle.state(process.host, process.pid))
    if process.end is not None or process.death is not None or process.host != platform.node() or process.pid <= 0:
        return False
    try:
        os.kill(process.pid, 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    now = stat(process.pid)
    return now is None or (now.state not in GONE and _same(process, now))


def state_of(process: LoggedProcess) -> Optional[str]:
    """Return the kernel's letter for a process as it is now, or as it was when it was folded; None if this host cannot tell."""
    if process.state is not None:
        return process.state
    return kernel_state(process.pid, process.host, process.started.born or 0, process.started.boot) if process.pid > 0 else None


def kernel_state(pid: int, host: str, born: int, boot: str) -> Optional[str]:
    """Return the kernel's letter for a process's state, T for a stopped one; empty if it is gone, None if it ran on another host or boot."""
    bundle = bundled.current()
    if bundle is not None:
        return bundle.state(host, pid)
    if host != platform.node() or boot not in ("", _boot()):
        return None
    now = stat(pid)
    return now.state if now is not None and now.state not in GONE and born in (0, now.born) else ""


def _same(process: LoggedProcess, now: Stat) -> bool:
    """Compare the start times of the process and of the log; a log of an older probe has only the time of its first line."""
    if process.started.born is not None:
        return process.started.born == now.born and process.started.boot in ("", _boot())
    since = _host_started()
    return since is None or not process.start_when or since + now.born / os.sysconf("SC_CLK_TCK") <= process.start_when + _SLACK


@lru_cache(maxsize=1)
def _boot() -> str:
    return text("sys/kernel/random/boot_id").strip()


@lru_cache(maxsize=1)
def _host_started() -> Optional[float]:
    times = [line.split()[1] for line in text("stat").splitlines() if line.startswith("btime ")]
    return float(times[0]) if times else None
