"""The watcher of a launcher: it reads the ledgers of the ranks that it has started, and says while they hang who is missing and who waits where.

It reads no log and judges nothing: a child of its own does, as after a launch that has failed.
"""

import os
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Protocol

from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.birth import ancestors
from ddp_probe.traced.hangs._cards import CardsChild
from ddp_probe.traced.hangs._daemon import NAME, Daemon
from ddp_probe.traced.hangs._held import Held
from ddp_probe.traced.hangs._others import Others
from ddp_probe.traced.hangs._places import together
from ddp_probe.traced.hangs._standstill import Seen, Standstill, read_on
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.record import Recorder, brief

if TYPE_CHECKING:
    from ddp_probe.activation.this_process import ThisProcess

_SHORTEST, _LONGEST, _PARTS = 1.0, 5.0, 12
"""Seconds between two looks, and which part of DDP_PROBE_HANG_AFTER that is."""
_HOLD, _SAVE = 0.02, 0.1
"""Seconds between two looks for ledgers that are new, which is shorter than ranks take to meet; and for ranks that are no more."""
_PATIENCE = 12.0
"""Seconds that the child may take. After that the ledgers alone are told."""


class LauncherSession(Protocol):
    """The session as the launcher's watcher sees it."""

    process: "ThisProcess"
    recorder: Recorder


class LaunchWatcher:
    """Watches the ranks of this launcher, from its first launch to its end, or to restore()."""

    def __init__(self) -> None:
        self._daemon: Optional[Daemon] = None
        self._standstill: Optional[Standstill] = None
        self._others: Optional[Others] = None
        self._held: Optional[Held] = None
        self._cards: Optional[CardsChild] = None
        self._interval, self._due, self._save_due = _SHORTEST, 0.0, 0.0

    def start(self, session: LauncherSession, host: str) -> None:
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
            self._standstill = Standstill(self._others, after, session.recorder, verdict.of)
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
        if standstill is not None and now >= self._due:
            self._due = now + self._interval
            standstill.look()
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
        lines = self._read() if seen.has_lowest and brief.is_wanted() and brief.can_start() else None
        if lines is None:
            return "%s%s %s" % (together(seen.places), seen.calm, self._read_on)
        return "%s %s" % (lines[0], self._read_on) if lines else ""

    def _read(self) -> Optional[List[str]]:
        try:
            return brief.Reader(self._folder, self._environ).lines(_PATIENCE, lambda: bool(self.daemon.ending))
        except ours(OSError):
            return None
