"""How a child answers, and how it makes sure to end with doctor."""

import contextlib
import ctypes
import json
import os
import signal
import time
import traceback
from typing import Any, Dict, Iterator

from ddp_probe.doctor.children import MARK, PARENT

_SET_PARENT_DEATH_SIGNAL = 1  # prctl(PR_SET_PDEATHSIG), Linux
_LONGEST = 500  # Characters of an error that are said.


def end_with_parent() -> None:
    """Let the kernel end this process when doctor ends, however it ends."""
    try:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    except (OSError, AttributeError):  # not Linux: rely on doctor's clean-up
        return
    parent = os.environ.get(PARENT)
    if parent is not None and os.getppid() != int(parent):  # doctor ended before the request to the kernel
        os._exit(1)


@contextlib.contextmanager
def stage(name: str) -> Iterator[Dict[str, Any]]:
    """Say that a stage begins and that it has ended, with the facts that it yields. An exception in it ends the process."""
    facts: Dict[str, Any] = {}
    say(stage=name, phase="begin")
    try:
        yield facts
    except Exception as exc:
        traceback.print_exc()
        say(stage=name, phase="error", error=_short(exc), at=time.monotonic())
        os._exit(1)  # no clean-up: it may wait for another rank, or for a driver
    say(stage=name, phase="end", **facts)


def _short(exc: Exception) -> str:
    """Return an exception as one line, without torch's C++ frames."""
    lines = [line.strip() for line in str(exc).split("\n") if line.strip()]
    return "%s: %s" % (type(exc).__name__, lines[0][:_LONGEST]) if lines else type(exc).__name__


def say(**answer: Any) -> None:
    """Print one answer, in one write, on a separate line: libraries print to stdout as well."""
    os.write(1, ("\n%s%s\n" % (MARK, json.dumps(answer))).encode())
