"""Runs a program of programs/ in a child with a time limit, so that a crash or a hang of a driver is a finding and not the end."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

MARK = "ddp_probe-doctor "
PARENT = "_DDP_PROBE_DOCTOR"
"""A variable that tells a child the process that started it."""

_LAST_WORDS = 300  # Characters of the last line on stderr that are shown.
_LAST_LINES = 8
_TURN = 0.05  # Seconds between two looks at the children.
_clock = time.monotonic
_GRACE = 5.0  # Seconds that the kernel has to end a killed child.


class ChildAnswer(NamedTuple):
    """What a child said before it ended."""

    answers: List[Dict[str, Any]]  # One for each line that it printed for us, in order.
    code: Optional[int]  # Its exit code; negative for a signal; None if it was still running at the time limit.
    last_words: str  # The last line of its stderr.
    seconds: float
    last_lines: Tuple[str, ...] = ()  # The last lines of its stderr.

    @property
    def last(self) -> Dict[str, Any]:
        """The last answer, or an empty one."""
        return self.answers[-1] if self.answers else {}

    @property
    def ended_well(self) -> bool:
        """Whether it said what it had to say."""
        return self.code == 0 and bool(self.answers)

    def how(self) -> str:
        """Say how it ended, as the end of a sentence."""
        if self.code is None:
            return "did not answer within %.0f s" % self.seconds
        if self.code < 0:
            return "was killed by %s" % _signal(-self.code)
        return "ended with exit code %d%s" % (self.code, ": " + self.last_words if self.last_words else "")


class Child:
    """A running program, with what it prints in files, so that no pipe can fill up or be held open by a grandchild."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the child
        self._started = time.monotonic()
        self._seconds: Optional[float] = None
        env = {**_clean(environ), PARENT: str(os.getpid())}
        self._process = subprocess.Popen(list(command), env=env, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err, start_new_session=True)
        self._code: Optional[int] = None

    def poll(self) -> Optional[int]:
        """Return its exit code, or None while it runs."""
        if self._code is None:
            self._code = self._process.poll()
            self._seconds = None if self._code is None else time.monotonic() - self._started
        return self._code

    def said(self) -> List[Dict[str, Any]]:
        """Return what it has said so far."""
        return _answers(_text(self._out))

    @property
    def text(self) -> str:
        """Return what it has printed so far: on stdout, or if that is nothing, on stderr."""
        return _text(self._out) or _text(self._err)

    def answer(self) -> ChildAnswer:
        """End it, and return what it printed."""
        code = self.poll()
        seconds = time.monotonic() - self._started if self._seconds is None else self._seconds
        self.end()
        lines = [line.strip()[:_LAST_WORDS] for line in _text(self._err).split("\n") if line.strip()][-_LAST_LINES:]
        return ChildAnswer(self.said(), code, lines[-1] if lines else "", seconds, tuple(lines))

    def end(self) -> None:
        """End it and what it started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a call into a driver may hold a process even then
            self._process.wait(_GRACE)


def started(program: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start a program of programs/."""
    return Child([sys.executable, "-m", "ddp_probe.judging.doctor.programs." + program, *arguments], environ)


def answer_of(child: Child, seconds: float) -> ChildAnswer:
    """Wait for a program; return what it printed."""
    try:
        _wait([child], seconds, None)
        return child.answer()
    finally:
        child.end()


def together(
    programs: Sequence["tuple[str, Sequence[str], Mapping[str, str]]"], seconds: float, *, after_failure: Optional[float] = None
) -> List[ChildAnswer]:
    """Run programs side by side, each with its arguments and environment; return what each printed.

    Programs that wait for each other have `after_failure` seconds left once one of them has failed.
    """
    children: List[Child] = []
    try:
        for program, arguments, environ in programs:
            children.append(started(program, arguments, environ))
        _wait(children, seconds, after_failure)
        return [child.answer() for child in children]
    finally:
        for child in children:
            child.end()


def output(command: Sequence[str], environ: Mapping[str, str], seconds: float, over: Callable[[], bool] = bool) -> Tuple[Optional[int], str]:
    """Run a tool; return its exit code, which is None if it did not end in time or is not wanted any more, and what it printed."""
    try:
        child = Child(command, environ)
    except OSError as exc:
        return 127, str(exc)
    try:
        until = _clock() + seconds
        while child.poll() is None and _clock() < until and not over():
            time.sleep(_TURN)
        return child.poll(), child.text
    finally:
        child.end()


def _wait(children: Sequence[Child], seconds: float, after_failure: Optional[float]) -> None:
    until = _clock() + seconds
    failed = False
    while any(child.poll() is None for child in children) and _clock() < until:
        if after_failure is not None and not failed and any(child.poll() for child in children):
            failed, until = True, min(until, _clock() + after_failure)
        time.sleep(_TURN)


def _clean(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment of the job without the probe, which has nothing to record here."""
    return {name: value for name, value in environ.items() if not name.startswith("DDP_PROBE")}


def _text(file: Any) -> str:
    """Return what is in a file; without seek, which would move the place where the child writes."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")


def _answers(text: str) -> List[Dict[str, Any]]:
    answers = []
    for line in text.split("\n"):
        if MARK in line:
            with contextlib.suppress(ValueError):  # a killed child may leave half a line
                answers.append(json.loads(line.partition(MARK)[2]))
    return answers


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number
