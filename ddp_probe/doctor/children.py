"""Runs a program of programs/ in a child with a time limit, so that a crash or a hang of a driver is a finding and not the end."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

MARK = "ddp_probe-doctor "
_LAST_WORDS = 300  # Characters of the last line on stderr that are shown.
_GRACE = 5.0  # Seconds that the kernel has to end a killed child.


class Told(NamedTuple):
    """What a child said before it ended."""

    answers: List[Dict[str, Any]]  # One for each line that it printed for us, in order.
    code: Optional[int]  # Its exit code; negative for a signal; None if it was still running at the time limit.
    last_words: str  # The last line of its stderr.
    seconds: float

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

    def __init__(self, program: str, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the child
        self._started = time.monotonic()
        command = [sys.executable, "-m", "ddp_probe.doctor.programs." + program, *arguments]
        self._process = subprocess.Popen(
            command, env=_clean(environ), stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err, start_new_session=True
        )
        self._code: Optional[int] = None

    def wait(self, until: float) -> Told:
        """Wait until this time of time.monotonic(), then end it with all that it started."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._code = self._process.wait(max(0.0, until - time.monotonic()))
        seconds = time.monotonic() - self._started
        self.end()
        return Told(_answers(self._out), self._code, _last_line(self._err), seconds)

    def end(self) -> None:
        """End it and what it started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a call into a driver may hold a process even then
            self._process.wait(_GRACE)


def together(programs: Sequence["tuple[str, Sequence[str], Mapping[str, str]]"], seconds: float) -> List[Told]:
    """Run programs side by side, each with its arguments and environment; return what each said."""
    children: List[Child] = []
    try:
        for program, arguments, environ in programs:
            children.append(Child(program, arguments, environ))
        until = time.monotonic() + seconds
        return [child.wait(until) for child in children]
    finally:
        for child in children:
            child.end()


def _clean(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment of the job without the probe, which has nothing to record here."""
    return {name: value for name, value in environ.items() if not name.startswith("DDP_PROBE")}


def _answers(file: Any) -> List[Dict[str, Any]]:
    file.seek(0)
    lines = [line for line in file.read().decode("utf-8", "replace").split("\n") if MARK in line]
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):  # a killed child may leave half a line
            found.append(json.loads(line.partition(MARK)[2]))
    return found


def _last_line(file: Any) -> str:
    file.seek(0)
    lines = [line.strip() for line in file.read().decode("utf-8", "replace").split("\n") if line.strip()]
    return lines[-1][:_LAST_WORDS] if lines else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number
