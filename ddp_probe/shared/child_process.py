"""A child process whose output is read with a bound in bytes and in time. At either bound the child and its descendants are ended.

What it prints comes through pipes. A file could fill the disk, and RLIMIT_FSIZE would bound the child's own files as well. A descendant that lives on
in a session of its own writes into a closed pipe.
"""

import contextlib
import itertools
import os
import select
import signal
import subprocess
import time
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ddp_probe.shared.ours import ours

MOST = 16 << 20
"""Bytes that a child may print, on stdout and stderr together, unless whoever starts it says otherwise."""

_NAME = "_DDP_PROBE_CHILD"  # A variable by which a descendant is known, whatever its parent and its session.
_PIECE = 1 << 16
_TURN = 0.05  # Seconds between two looks at whether the answer is still wanted.
_GRACE = 5.0  # Seconds that the kernel has to end a killed child.
_ROUNDS = 8  # Looks for descendants: each may start another one while they are ended.
_numbers = itertools.count(1)


class ChildOutput(NamedTuple):
    """What a child has printed, and how it ended."""

    code: Optional[int]  # Its exit code; negative for a signal; None if it was ended at a bound.
    out: bytes
    err: bytes
    why: str  # Why it was ended, as the end of a sentence; empty if it ended by itself.
    overflowed: bool = False  # Whether it was ended because it printed too much.

    @property
    def text(self) -> str:
        """What it printed on stdout, or if that is nothing, on stderr."""
        return (self.out or self.err).decode("utf-8", "replace")


class ChildProcess:
    """A running program that leads a session of its own."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], *, cwd: Optional[str] = None, most: int = MOST, may_be_killed: bool = True
    ) -> None:
        self._mark = "%d-%d" % (os.getpid(), next(_numbers))
        self._room = self._most = most
        self._may_be_killed = may_be_killed  # Not while it holds another process: that would stay stopped.
        self.began = time.monotonic()
        self._code: Optional[int] = None
        self.why = ""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            list(command), env={**env, _NAME: self._mark}, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self._pipes = [stream for stream in (self._process.stdout, self._process.stderr) if stream is not None]
        self._fds = [stream.fileno() for stream in self._pipes]
        self._read: Dict[int, bytearray] = {fd: bytearray() for fd in self._fds}
        self._open = list(self._fds)
        for fd in self._fds:
            os.set_blocking(fd, False)
        self.seconds: Optional[float] = None  # How long it ran; None while it runs.

    def poll(self) -> Optional[int]:
        """Read on, and return the exit code; None while it runs. A child that prints more than it may is ended."""
        if self._code is None and not self.why:
            code = self._process.poll()  # Before the pipes are read: they hold all that it has printed then.
            self._read_on()
            if self._room < 0:
                return self.stop("printed more than %d bytes" % self._most)
            self._ended(code)
        return self._code

    def wait(self, seconds: float, over: Callable[[], bool] = bool) -> ChildOutput:
        """Return what it has printed once it has ended. At the time limit, or once its answer is not wanted any more, it is ended."""
        until = self.began + seconds
        while self.poll() is None and time.monotonic() < until and not over():
            self._look(min(_TURN, max(0.0, until - time.monotonic())))
        if self._code is None:
            self.stop("did not answer within %.0f s" % seconds)
        return self.printed()

    def printed(self) -> ChildOutput:
        """Return what it has printed so far."""
        out, err = (bytes(self._read[fd]) for fd in self._fds)
        return ChildOutput(None if self.why else self._code, out, err, self.why, self._room < 0)

    def stop(self, why: str) -> Optional[int]:
        """End it and all its descendants, wherever they are; return its exit code."""
        self.why = self.why or why
        self.end(everywhere=True)
        return self._code

    def end(self, *, everywhere: bool = False) -> None:
        """End it and what it started in its session; everywhere, what has left the session too."""
        if not self._may_be_killed:
            self.let_go()
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for _ in range(_ROUNDS if everywhere else 0):
            found = [pid for pid in _descendants(self._process.pid, self._mark) if _killed(pid)]
            if not found:
                break
        with contextlib.suppress(subprocess.TimeoutExpired):  # a call into a driver may hold a process even then
            self._ended(self._process.wait(_GRACE))
        self.let_go()

    def let_go(self) -> None:
        """Read no more of it, and let it run: whoever writes into its pipes gets an error."""
        self._open.clear()
        for stream in self._pipes:
            stream.close()

    def _ended(self, code: Optional[int]) -> None:
        if code is not None and self._code is None:
            self._code, self.seconds = code, time.monotonic() - self.began

    def _look(self, seconds: float) -> None:
        """Wait until it prints or ends, or the time is over."""
        if not self._open:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            return
        poll = select.poll()
        for fd in self._open:
            poll.register(fd, select.POLLIN)
        poll.poll(int(1000 * seconds) + 1)

    def _read_on(self) -> None:
        for fd in list(self._open):
            while self._room >= 0:
                try:
                    piece = os.read(fd, _PIECE)
                except ours(BlockingIOError):
                    break
                if not piece:  # It has closed this one, and may go on.
                    self._open.remove(fd)
                    break
                self._read[fd] += piece[: self._room]
                self._room -= len(piece)


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ours(OSError):  # It is gone, or has become another user's.
        return False
    return True


def _descendants(child: int, mark: str) -> List[int]:
    """Return what descends from a child and still runs: by parents, by the session, and by the variable, which both forks and programs inherit."""
    parents: Dict[int, int] = {}
    found = set()
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        fields = _read_proc(pid, "stat").rpartition(b")")[2].split()
        if len(fields) < 4 or fields[0] in (b"Z", b"X"):
            continue
        parents[pid] = int(fields[1])
        if int(fields[3]) == child or b"%s=%s" % (_NAME.encode(), mark.encode()) in _read_proc(pid, "environ").split(b"\0"):
            found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent == child or parent in found}
        grown, found = not more <= found, found | more
    return sorted(found - {os.getpid()})


def _read_proc(pid: int, name: str) -> bytes:
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as file:
            return file.read()
    except ours(OSError):
        return b""
