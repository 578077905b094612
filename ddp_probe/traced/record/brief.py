"""The brief report of a run, made by a child process: for a launcher, which reads no log itself. Never started by a rank.

The child is not traced. One that is asked for while the job runs (Reader) is polite: it takes less of the processor than the job, ends by itself in
time, keeps nothing of the job's open, and its end wakes nobody but us.
"""

import os
import select
import signal
import sys
import time
from typing import Callable, Dict, List, Optional, Tuple

import ddp_probe
from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours, suppress

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(ddp_probe.__file__)))
# Not -m: it would let a rich.py or a json.py in the folder of the launch be imported; PYTHONPATH may name that folder as well.
_IMPORT = """
import sys
sys.path[0] = sys.argv.pop(1)
from ddp_probe.activation.own_imports import own_modules
with own_modules():
    from %s import main
    sys.exit(main(sys.argv[1:]))
"""
_POLITE = """
import os, signal
os.closerange(3, 65536)
os.nice(5)
"""
_REPORT = _IMPORT % "ddp_probe.cli"
STANDSTILL = _POLITE + "signal.alarm(60)" + _IMPORT % "ddp_probe.showing.standstill_words"
"""What a Reader runs that says why a run stands still."""
STACKS = _POLITE + "signal.alarm(60)" + _IMPORT % "ddp_probe.attaching.silent_stacks"
"""What a Reader runs that asks py-spy for the stacks of processes."""
CARDS = _POLITE + _IMPORT % "ddp_probe.doctor.programs.cards_state"
"""What a child of start() runs that asks for the state of the cards until it is ended."""
_STEP = 100
"""Milliseconds between two looks at whether the answer is still wanted."""
_MOST = 1 << 16
_ANY = (0, (1 << 32) - 1, (1 << 64) - 1)
_WAIT4, _WAITID = {"x86_64": ("61", "247")}.get(os.uname().machine, ("260", "95"))
_WAITS = {_WAIT4: _ANY, _WAITID: (0,)}
"""The kernel's numbers of the two calls, and the first arguments that stand for any child."""


def is_wanted() -> bool:
    """Tell whether a person has not asked for silence."""
    return "off" not in (settings.get(settings.REPORT), settings.get(settings.ECHO))


def command(name: str, folder: str) -> str:
    """Return what a person types, in the folder where the job was launched, to have this run read."""
    if os.path.dirname(folder) == os.path.join(os.getcwd(), "ddp_probe_runs"):
        return "python -m ddp_probe %s" % name
    return "python -m ddp_probe %s %s" % (name, folder)


def arguments(folder: str) -> List[str]:
    """Return the command that prints the brief report."""
    return [sys.executable, "-c", _REPORT, _HOME, "report", "--brief", folder]


def environment() -> Dict[str, str]:
    """Return the environment without the probe's variables, so that the child is not traced."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DDP_PROBE")}
    return {**kept, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}


def can_start() -> bool:
    """Tell whether a child of ours would go unnoticed: nobody handles SIGCHLD, and nobody waits for whichever child ends next."""
    unhandled = signal.getsignal(signal.SIGCHLD) in (signal.SIG_DFL, signal.SIG_IGN)
    return bool(sys.executable) and unhandled and True not in [_waits_for_any(task) for task in _tasks()]


def _tasks() -> List[str]:
    try:
        return os.listdir("/proc/self/task")
    except ours(OSError):
        return []


def _waits_for_any(task: str) -> bool:
    """Tell whether a thread is in wait() for no particular child."""
    try:
        with open("/proc/self/task/%s/syscall" % task) as file:
            call = file.read().split()[:2]
    except ours(OSError):
        return False
    return len(call) == 2 and call[0] in _WAITS and int(call[1], 16) in _WAITS[call[0]]


def start(code: str, arguments: List[str], environ: Dict[str, str]) -> Tuple[int, int]:
    """Start a child; return its number and the end of the pipe that it prints to."""
    out, end = os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", code, _HOME, *arguments],
            environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, end, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGALRM, signal.SIGTERM],
        )
    except BaseException:
        os.close(out)
        raise
    finally:
        os.close(end)
    return pid, out


class Reader:
    """A child whose answer is awaited for a while."""

    def __init__(self, code: str, arguments: List[str], environ: Dict[str, str]) -> None:
        self._pid, self._out = start(code, arguments, environ)

    def lines(self, seconds: float, is_over: Callable[[], bool]) -> Optional[List[str]]:
        """Return what it says within this time; None if it did not come to an end, or if it is over before that."""
        until = time.monotonic() + seconds
        data, poll = b"", select.poll()
        poll.register(self._out, select.POLLIN)
        try:
            while time.monotonic() < until and not is_over() and len(data) < _MOST:
                if poll.poll(_STEP):
                    more = os.read(self._out, 1 << 12)
                    if not more:
                        return self._ended(data)
                    data += more
            return None
        finally:
            os.close(self._out)
            self._let_go()

    def _ended(self, data: bytes) -> Optional[List[str]]:
        with suppress(ChildProcessError):  # The job has waited for every child of the process.
            pid, self._pid = self._pid, 0
            if os.waitpid(pid, 0)[1]:
                return None
        return data.decode("utf-8", "replace").splitlines()

    def _let_go(self) -> None:
        """End the child if it still runs."""
        try:
            if self._pid and os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        except ours(ChildProcessError, ProcessLookupError):
            return
