"""The watcher of a rank: one thread that wakes about once a second, reads the time of the ledger's latest record, and says when nothing moves.

No fork is made with its timer set, as with its thread (daemon.py): a forked child finds nothing of either but memory.
"""

import os
import sys
import time
from typing import Any, Optional, Set, Tuple

from ddp_probe.shared import schema, settings, threads
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.facts.call_site import MainThread, thread_stacks
from ddp_probe.traced.hangs.daemon import NAME, Daemon, Timer
from ddp_probe.traced.hangs.place_in_ledger import Hang, standing
from ddp_probe.traced.hangs.standstill import Unled
from ddp_probe.traced.patching import PatchRegistry
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.record import Recorder
from ddp_probe.traced.record.ledger_memory import LedgerFile, word
from ddp_probe.traced.record.text_file import TextFile
from ddp_probe.traced.session import Session

_INTERVAL = 1.0
_FLUSH = 0.25
"""How often the ledger is written into its file, in seconds: what a killed rank without a launcher of ours may lose."""
_PARTS = 4
"""The thread wakes, and sets the timer again, after this part of DDP_PROBE_HANG_AFTER if that is sooner."""
_LOOKS = 5
"""How often the folder of requests is read again after it has changed: two changes may have one time."""
_MOVED, _MADE = word("moved_ns"), word("mono_ns")
_ASK, _REQUEST = "ask", "stacks."


class Watcher:
    """Watches this process from inside, to its end or to restore(): a rank from its import of torch on, any other from its first process group."""

    def __init__(self, registry: PatchRegistry) -> None:
        self.timer = Timer()
        self._registry = registry
        self._rounds: Optional[_Rounds] = None
        self._daemon: Optional[Daemon] = None
        self._file: Optional[LedgerFile] = None
        self._attends = False

    def attend(self) -> None:
        """From here on, see what the job does with faulthandler's timer, which ours must not disturb; a launcher has no use for it."""
        if self._attends:
            return
        self._attends = True
        if settings.get(settings.HANG_AFTER) is not None and settings.get(settings.LEDGER):
            guard.run(NAME, self.timer.watch, self._registry)

    def start_early(self, session: Session) -> None:
        """Start the thread in a rank that has no process group yet: others may wait for it to make one."""
        after = settings.get(settings.HANG_AFTER)
        if after is not None and settings.get(settings.LEDGER) and self._daemon is None:
            self.attend()  # Before our thread is one that may be the timer's.
            self._daemon = Daemon(_Early(session, after).look, min(_INTERVAL, after / _PARTS))
            self._daemon.start()

    def start(self, file: LedgerFile, session: Session) -> None:
        """Start the thread; with DDP_PROBE_HANG_AFTER off it only writes the ledger into its file, if that is to be written."""
        after = settings.get(settings.HANG_AFTER)
        if self._file is not None:
            return
        self._file = file
        if after is not None:
            self.attend()
            self._rounds = _Rounds(file, session, after, self.timer, self._daemon)
        if self._daemon is None and (self._rounds is not None or not file.is_file):
            self._daemon = self._rounds.daemon if self._rounds is not None else Daemon(lambda: flushed(file), _FLUSH)
            self._daemon.start()

    def stop(self) -> None:
        """End the thread and wait for it; take the timer away."""
        rounds, self._rounds = self._rounds, None
        daemon, self._daemon = self._daemon, None
        file, self._file = self._file, None
        if daemon is not None:
            daemon.end()
        if file is not None:
            guard.run(NAME, flushed, file)
        self.timer.disarm()
        if rounds is not None:
            rounds.close()

    def tell_over(self) -> None:
        """Say now that a hang is over, if it is: the process ends before the thread looks again."""
        if self._file is not None:
            guard.run(NAME, flushed, self._file)  # What is reported of this rank is read from its file.
        if self._rounds is not None:
            guard.run(NAME, self._rounds.tell_over)

    def fall_silent(self) -> None:
        """In the child of a fork there is no thread: forget it."""
        self.timer.fall_silent()
        rounds, self._rounds = self._rounds, None
        self._daemon = self._file = None
        if rounds is not None:
            rounds.close(remove_empty=False)


class _Early:
    """What the thread does before there is a process group: it tells where the main thread stands still, and answers requests.

    Without a launcher of ours, the lowest rank says where each rank of the host stands, if none has a process group.
    """

    def __init__(self, session: Session, after: float) -> None:
        self._recorder = session.recorder
        self._requests = Requests(session.process.folder)
        self._hang = Hang(after)
        self._main = MainThread()
        self._others = Unled(session.recorder.path, session.process.folder, after, session.recorder) if session.recorder.path else None

    def look(self) -> None:
        """Write that the process stands, unless it computes, or that this is over."""
        self._main.look()
        over = self._hang.over(self._main.since_ns)
        if over is not None:
            self._recorder.point(over)
        since = (time.monotonic_ns() - self._main.since_ns) / 1e9
        if self._hang.is_due(since):
            is_busy = self._main.is_busy()
            self._hang.pass_on(told=not is_busy)
            if not is_busy:
                stacks = thread_stacks(threads.get_ident())
                self._recorder.point(schema.HangSuspected(since=since, still=since, children=self._main.children(), threads=stacks))
        if self._others is not None:
            self._others.tell_over()
            self._others.look(self._main.since_ns, time.monotonic_ns())
        self._requests.answer(self._recorder)


class _Rounds:
    """What the thread does, round by round."""

    def __init__(self, file: LedgerFile, session: Session, after: float, timer: Timer, daemon: Optional[Daemon]) -> None:
        self._words = file.words
        self._file = file
        self._recorder = session.recorder
        self._states = session.states
        self._process = session.process
        self._after = after
        self._timer = timer
        self._stacks = TextFile(file.path[: -len(".ledger")] + ".stacks")
        self._requests = Requests(session.process.folder)
        self._hang = Hang(after)
        self._others = Unled(file.path, session.process.folder, after, session.recorder)
        self._armed_at = 0.0
        self._written = 0
        self._interval, self._due = min(_INTERVAL, after / _PARTS), 0.0
        self._main = MainThread()
        interval = self._interval if file.is_file else min(_FLUSH, self._interval)
        self.daemon = daemon or Daemon(self._wake, interval)
        self.daemon.turn_to(self._wake, interval)

    def close(self, remove_empty: bool = True) -> None:
        """Let go of the file of the timer."""
        self._stacks.close(remove_empty)

    def _wake(self) -> None:
        flushed(self._file)
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._interval - _FLUSH / 2  # The thread wakes at whole intervals, or somewhat later.
            self._look()

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._armed_at >= self._after / _PARTS:
            self._armed_at = now
            self._timer.arm(self._stacks, self._after)
        try:
            moved = int(self._words[_MOVED] or self._words[_MADE])
        except ours(ValueError):
            if self.daemon.ending:  # The map is closed.
                return
            raise
        self.tell_over()
        if time.monotonic_ns() - moved >= self._interval * 1e9:
            self._main.look()
        suspected = self._suspected(moved)
        if suspected is not None:
            self._recorder.point(suspected)
            self._states.note("hang", always=True)
        self._states.look()
        self._others.look(moved, time.monotonic_ns())
        self._requests.answer(self._recorder)

    def tell_over(self) -> None:
        """Write that a hang is over, if it was reported, or the timer has written stacks, and the process has moved since."""
        self._others.tell_over()
        written = self._stacks.size()
        if written > self._written:
            self._stacks.mask()
            self._written = self._stacks.size()
            self._hang.was_written()
        over = self._hang.over(int(self._words[_MOVED] or self._words[_MADE]))
        if over is not None:
            self._recorder.point(over)

    def _suspected(self, moved: int) -> Optional[schema.Event]:
        since = (time.monotonic_ns() - moved) / 1e9
        if not self._hang.is_due(since):
            return None
        where = standing(self._file)
        waited_for = _has_group() and (self._process.rank_info.world_size or 0) > 1
        self._hang.pass_on(told=bool(where.operation or where.during or waited_for))
        if not (where.operation or where.during or waited_for):
            return None
        still = min(since, (time.monotonic_ns() - self._main.since_ns) / 1e9)
        stacks = thread_stacks(threads.get_ident())
        return schema.HangSuspected(since=since, still=still, children=self._main.children(), threads=stacks, **where._asdict())


def flushed(file: LedgerFile) -> None:
    """Write a ledger into its file, unless it is being closed this moment."""
    with suppress(ValueError):
        file.flush()


class Requests:
    """The files ask/stacks.N of the run's folder: each is answered once, and what was there before this process is not for it."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, _ASK)
        self._changed: Tuple[int, ...] = ()
        self._looks = 0
        self._known: Set[int] = set()
        self._known = set(self._numbers())

    def answer(self, recorder: Recorder) -> None:
        """Write the stacks for each request that is new."""
        for number in self.new():
            recorder.point(schema.Stacks(request=number, threads=thread_stacks(threads.get_ident())))

    def new(self) -> Any:
        """Return the numbers of requests that have not been answered."""
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except ours(OSError):
            return ()
        if (changed,) != self._changed:
            self._changed, self._looks = (changed,), _LOOKS
        if not self._looks:
            return ()
        self._looks -= 1
        found = sorted(set(self._numbers()) - self._known)
        self._known.update(found)
        return found

    def _numbers(self) -> Any:
        try:
            names = os.listdir(self._folder)
        except ours(OSError):
            return []
        ends = [name[len(_REQUEST) :] for name in names if name.startswith(_REQUEST)]
        return [int(end) for end in ends if end.isascii() and end.isdigit()]


def _has_group() -> bool:
    """Tell whether there is a process group: others may wait for this process while it is in no call."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    return c10d is not None and bool(c10d.is_initialized())
