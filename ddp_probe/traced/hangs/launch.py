"""The watcher of a launcher: it reads the ledgers of the ranks that it has started, and says while they hang who is missing and who waits where."""

import os
import signal
import time
from typing import Any, Dict, List, Optional

import msgspec

from ddp_probe.shared import schema, settings
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.facts.birth import ancestors
from ddp_probe.traced.hangs.daemon import NAME, Daemon, Pauses
from ddp_probe.traced.hangs.others import Held, Others
from ddp_probe.traced.hangs.places import together
from ddp_probe.traced.hangs.standstill import Seen, Standstill, read_on
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.record import Recorder, brief
from ddp_probe.traced.session import Session

_SHARE = 4
"""Part of what a process may write that these lines may take: how the children ended is worth more."""
_TURN = 0.25
_TO_END = 1.0
_MOST = 1 << 16
_CANNOT = "Not asked: the launcher handles SIGCHLD, or waits for whichever child ends next."


class CardsChild:
    """Starts the child, reads what it prints from time to time, and ends it."""

    def __init__(self, folder: str, recorder: Recorder, environ: Dict[str, str]) -> None:
        self._recorder = recorder
        self._room = settings.get(settings.MAX_BYTES) // _SHARE
        self._data = b""
        self._due = 0.0
        self._pid, self._out = 0, -1
        if not brief.can_start():
            recorder.point(schema.CardsState(problem=_CANNOT))
            return
        self._pid, self._out = brief.start(brief.CARDS, [str(settings.get(settings.CARDS)), folder], environ)
        os.set_blocking(self._out, False)

    def look(self) -> None:
        """Write what has been answered since the last look; end the child once its share of the log is used up."""
        now = time.monotonic()
        if self._out < 0 or now < self._due:
            return
        self._due = now + _TURN
        more = self._read()
        if more is None:
            return
        self._room -= len(more)
        if not more or self._room <= 0:
            self.end()
        *lines, self._data = (self._data + more).split(b"\n")
        for line in lines:
            self._recorder.point(msgspec.json.decode(line, type=schema.CardsState))

    def _read(self) -> Optional[bytes]:
        """Return what there is to read; empty once the child has ended, None if it has printed nothing."""
        try:
            return os.read(self._out, _MOST)
        except ours(BlockingIOError):
            return None

    def end(self) -> None:
        """Ask the child to end, which ends its tool first; make sure of it."""
        self.forget()
        pid, self._pid = self._pid, 0
        if not pid:
            return
        with suppress(ChildProcessError, ProcessLookupError):  # The job has waited for every child of the process.
            os.kill(pid, signal.SIGTERM)
            until = time.monotonic() + _TO_END
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    return
                time.sleep(0.01)

    def forget(self) -> None:
        """Let go of the pipe: the child of a fork has nothing to do with it."""
        out, self._out = self._out, -1
        if out >= 0:
            os.close(out)


# It reads no log and judges nothing: a separate child does, as after a launch that has failed.

_SHORTEST, _LONGEST, _PARTS = 1.0, 5.0, 12
"""Seconds between two looks, and which part of DDP_PROBE_HANG_AFTER that is."""
_HOLD, _SAVE = 0.02, 0.1
"""Seconds between two looks for ledgers that are new, which is shorter than ranks take to meet; and for ranks that are no more."""
_FOR_REPORT = 12.0
"""Seconds that the child may take. After that the ledgers alone are reported."""
_FOR_STACKS, _MOST_STACKS = 6.0, 4
"""Seconds that the child may take which asks py-spy, and for how many ranks."""


class LaunchWatcher:
    """Watches the ranks of this launcher, from its first launch to its end, or to restore()."""

    def __init__(self) -> None:
        self._daemon: Optional[Daemon] = None
        self._standstill: Optional[Standstill] = None
        self._others: Optional[Others] = None
        self._held: Optional[Held] = None
        self._cards: Optional[CardsChild] = None
        self._pauses = Pauses(0.0)
        self._interval, self._due, self._save_due = _SHORTEST, 0.0, 0.0

    def start(self, session: Session, host: str) -> None:
        """Start the thread, unless DDP_PROBE_LEDGER is off; a second time changes nothing. With DDP_PROBE_HANG_AFTER off it only holds ledgers."""
        after = settings.get(settings.HANG_AFTER)
        if not settings.get(settings.LEDGER) or self._daemon is not None:
            return
        pid, folder = os.getpid(), session.process.folder
        self._held = Held()
        os.environ[settings.HOLDER.name] = str(pid)
        self._others = Others(folder, host, lambda child: pid in ancestors(child)[1:], self._held)
        verdict = _Verdict(folder)
        if after is not None:
            self._standstill = Standstill(self._others, after, session.recorder, verdict.of, verdict.stacks)
            self._pauses = Pauses(after)
            self._interval = min(_LONGEST, max(_SHORTEST, after / _PARTS))
        if settings.get(settings.CARDS) is not None:
            self._cards = guard.run(NAME, CardsChild, folder, session.recorder, brief.environment())
        self._daemon = verdict.daemon = Daemon(self._look, _HOLD)
        self._daemon.start()

    def _look(self) -> None:
        others, standstill, cards, now = self._others, self._standstill, self._cards, time.monotonic()
        if others is not None:
            others.hold()
        if others is not None and now >= self._save_due:
            self._save_due = now + _SAVE
            others.save()
        if standstill is not None and self._daemon is not None:
            standstill.resumed(self._pauses.resumed(self._daemon))
            if now >= self._due:
                self._due = now + self._interval
                standstill.look(self._daemon.woke)
        if cards is not None:
            cards.look()

    def stop(self) -> None:
        """End the thread, and a child that still reads; say that the ranks have moved on, if they have."""
        daemon, self._daemon = self._daemon, None
        standstill, self._standstill = self._standstill, None
        held, self._held, self._others = self._held, None, None
        cards, self._cards = self._cards, None
        if held is not None:
            os.environ.pop(settings.HOLDER.name, None)
        if daemon is not None:
            daemon.end()
        if cards is not None:
            guard.run(NAME, cards.end)
        if standstill is not None:
            guard.run(NAME, standstill.tell_over)
        if held is not None:
            guard.run(NAME, held.save_all)

    def note_signal(self) -> None:
        """Note that a signal ends the launch: ranks that unwind because of it do not move on."""
        if self._standstill is not None:
            self._standstill.is_ending = True

    def fall_silent(self) -> None:
        """In the child of a fork there is no thread: forget it."""
        if self._held is not None:
            self._held.forget()
        if self._cards is not None:
            self._cards.forget()
        self._daemon = self._standstill = self._others = self._held = self._cards = None


class _Verdict:
    """What is said of a standstill: the report's finding by a child, or the places of this host's ranks."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read_on = read_on(folder)
        self._environ: Dict[str, str] = brief.environment()
        self.daemon: Any = None

    def of(self, seen: Seen) -> str:
        """Return a sentence or two; empty if the report sees no hang. The launcher of the lowest rank asks for it, and no other."""
        wanted = seen.has_lowest and brief.is_wanted() and brief.can_start()
        lines = self._read(brief.STANDSTILL, [self._folder], _FOR_REPORT) if wanted else None
        if lines is None:
            return "%s%s %s" % (together(seen.places), seen.calm, self._read_on)
        return "%s %s" % (lines[0], self._read_on) if lines else ""

    def stacks(self, silent: List[schema.LauncherSilent]) -> List[schema.LauncherSilent]:
        """Return what is seen of ranks in which native code holds the GIL, with their stacks if py-spy is there and may read them."""
        pids = [str(event.child_pid) for event in silent if not event.paused][:_MOST_STACKS]
        lines = self._read(brief.STACKS, pids, _FOR_STACKS) if pids and brief.is_wanted() and brief.can_start() else None
        answers = [msgspec.json.decode(line, type=schema.LauncherSilent) for line in lines or ()]
        read = {answer.child_pid: answer for answer in answers}
        for event in silent:
            answer = read.get(event.child_pid)
            if answer is not None:
                event.threads, event.problem, event.allow = answer.threads, answer.problem, answer.allow
        return silent

    def _read(self, code: str, arguments: List[str], seconds: float) -> Optional[List[str]]:
        try:
            return brief.Reader(code, arguments, self._environ).lines(seconds, lambda: bool(self.daemon.ending))
        except ours(OSError):
            return None
        finally:
            self.daemon.excuse()
