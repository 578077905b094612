"""Runs a program of programs/ in a child with a time limit, so that a crash or a hang of a driver is a finding and not the end."""

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.shared.child_process import MOST, ChildOutput, ChildProcess
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

MARK = "ddp_probe-doctor "
PARENT = "_DDP_PROBE_DOCTOR"
"""A variable that tells a child the process that started it."""

_LAST_WORDS = 300  # Characters of the last line on stderr that are shown.
_LAST_LINES = 8
_TURN = 0.05  # Seconds between two looks at the children.
_clock = time.monotonic
_TOOL_MOST = 1 << 20  # Bytes that a vendor's tool may print.


class ChildAnswer(NamedTuple):
    """What a child said before it ended."""

    answers: List[Dict[str, Any]]  # One for each line that it printed for us, in order.
    code: Optional[int]  # Its exit code; negative for a signal; None if it was ended at a limit.
    last_words: str  # The last line of its stderr.
    seconds: float
    last_lines: Tuple[str, ...] = ()  # The last lines of its stderr.
    too_much: str = ""  # Says that it was ended because it printed too much.

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
            return self.too_much or say("did not answer within {seconds:.0f} s", seconds=self.seconds)
        if self.code < 0:
            return say("was killed by {signal}", signal=_signal(-self.code))
        if self.last_words:
            return say("ended with exit code {code}: {words}", code=self.code, words=quoted(self.last_words))
        return say("ended with exit code {code}", code=self.code)


class Child(ChildProcess):
    """A running program that answers in lines; nothing of the probe is in its environment."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], most: int = MOST) -> None:
        super().__init__(command, {**_clean(environ), PARENT: str(os.getpid())}, most=most)

    def said(self) -> List[Dict[str, Any]]:
        """Return what it has said so far."""
        self.poll()
        return _answers(self.printed().out.decode("utf-8", "replace"))

    def answer(self) -> ChildAnswer:
        """End it, and return what it printed."""
        seconds = time.monotonic() - self.began
        if self.poll() is None:
            self.stop(say("did not answer within {seconds:.0f} s", seconds=seconds))
        self.end()
        printed = self.printed()
        words = printed.err.decode("utf-8", "replace").split("\n")
        lines = [line.strip()[:_LAST_WORDS] for line in words if line.strip()][-_LAST_LINES:]
        too_much = say("printed more than {count} bytes", count=self._most) if printed.overflowed else ""
        last_words = lines[-1] if lines else ""
        took = self.seconds or seconds
        return ChildAnswer(self.said(), printed.code, last_words, took, tuple(lines), too_much)


def started(program: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start a program of programs/."""
    return Child([sys.executable, "-m", "ddp_probe.doctor.programs." + program, *arguments], environ)


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


def with_task(program: str, task: Dict[str, Any], environ: Mapping[str, str], seconds: float) -> ChildAnswer:
    """Run one program, which reads its task from a file: a command line is short, and everybody sees it."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(task, file)
        file.flush()
        return together([(program, (file.name,), environ)], seconds)[0]


def output(command: Sequence[str], environ: Mapping[str, str], seconds: float, over: Callable[[], bool] = bool) -> ChildOutput:
    """Run a tool; return what it printed. It is ended if it prints too much, does not end in time, or is not wanted any more."""
    try:
        child = Child(command, environ, _TOOL_MOST)
    except OSError as exc:
        return ChildOutput(127, b"", str(exc).encode("utf-8", "replace"), "")
    try:
        return child.wait(seconds, over)
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
        return say("signal {number}", number=number)
