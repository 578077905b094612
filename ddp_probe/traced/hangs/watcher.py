"""The watcher of a rank: one thread that wakes about once a second, reads the time of the ledger's latest record, and says when nothing moves.

A forked child finds nothing of it but memory. Nothing in this process looks at frames without the GIL: while native code holds that, others see from
outside that the thread does not wake (standstill.py).
"""

import os
import sys
import time
from typing import Any, Optional, Set, Tuple

from ddp_probe.shared import schema, settings, threads
from ddp_probe.shared.ledger_codec import HEADER
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.facts.call_site import MainThread, thread_stacks
from ddp_probe.traced.facts.plain_values import values_of_main_thread
from ddp_probe.traced.hangs.daemon import NAME, Daemon, Pauses
from ddp_probe.traced.hangs.place_in_ledger import Hang, standing
from ddp_probe.traced.hangs.standstill import Unled
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.record import Recorder
from ddp_probe.traced.record.ledger_memory import LedgerFile
from ddp_probe.traced.session import Session

_INTERVAL = 1.0
_FLUSH = 0.25
"""How often the ledger is written into its file, in seconds: what a killed rank without a launcher of ours may lose."""
_PARTS = 4
"""The thread wakes after this part of DDP_PROBE_HANG_AFTER if that is sooner."""
_LOOKS = 5
"""How often the folder of requests is read again after it has changed: two changes may have one time."""
_MOVED, _MADE = HEADER.word("moved_ns"), HEADER.word("mono_ns")
_ASK, _REQUEST = "ask", "stacks."


class Watcher:
    """Watches this process from inside, to its end or to restore(): a rank from its import of torch on, any other from its first process group."""

    def __init__(self) -> None:
        self._rounds: Optional[_Rounds] = None
        self._daemon: Optional[Daemon] = None
        self._file: Optional[LedgerFile] = None

    def start_early(self, session: Session) -> None:
        """Start the thread in a rank that has no process group yet: others may wait for it to make one."""
        after = settings.get(settings.HANG_AFTER)
        if after is not None and settings.get(settings.LEDGER) and self._daemon is None:
            self._daemon = _Early(session, after).daemon
            self._daemon.start()

    def start(self, file: LedgerFile, session: Session) -> None:
        """Start the thread; with DDP_PROBE_HANG_AFTER off it only writes the ledger into its file, if that is to be written."""
        after = settings.get(settings.HANG_AFTER)
        if self._file is not None:
            return
        self._file = file
        if after is not None:
            self._rounds = _Rounds(file, session, after, self._daemon)
        if self._daemon is None and (self._rounds is not None or not file.is_file):
            self._daemon = self._rounds.daemon if self._rounds is not None else Daemon(lambda: flushed(file), _FLUSH)
            self._daemon.start()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._rounds = None
        daemon, self._daemon = self._daemon, None
        file, self._file = self._file, None
        if daemon is not None:
            daemon.end()
        if file is not None:
            guard.run(NAME, flushed, file)

    def tell_over(self) -> None:
        """Say now that a hang is over, if it is: the process ends before the thread looks again."""
        if self._file is not None:
            guard.run(NAME, flushed, self._file)  # What is reported of this rank is read from its file.
        if self._rounds is not None:
            guard.run(NAME, self._rounds.tell_over)

    def fall_silent(self) -> None:
        """In the child of a fork there is no thread: forget it."""
        self._rounds = self._daemon = self._file = None


class _Early:
    """What the thread does before there is a process group: it tells where the main thread stands still, and answers requests.

    Without a launcher of ours, the lowest rank says where each rank of the host stands, if none has a process group.
    """

    def __init__(self, session: Session, after: float) -> None:
        self.daemon = Daemon(self._look, min(_INTERVAL, after / _PARTS))
        self._recorder = session.recorder
        self._requests = Requests(session.process.folder)
        self._hang = Hang(after)
        self._pauses = Pauses(after)
        self._main = MainThread()
        self._others = Unled(session.recorder.path, session.process.folder, after, session.recorder) if session.recorder.path else None

    def _look(self) -> None:
        """Write that the process stands, unless it computes, or that this is over."""
        now = self.daemon.woke
        resumed = self._pauses.resumed(self.daemon)
        if resumed is not None:
            self._recorder.point(resumed)
            self._resume()
        self._main.look()
        over = self._hang.over(self._main.since_ns)
        if over is not None:
            self._recorder.point(over)
        since = (now - self._main.since_ns) / 1e9
        if self._hang.is_due(self._pauses.counted(self._main.since_ns, now)):
            is_busy = self._main.is_busy()
            self._hang.pass_on(reported=not is_busy)
            if not is_busy:
                stacks = thread_stacks(threads.get_ident())
                suspected = schema.HangSuspected(since=since, still=since, children=self._main.children(), threads=stacks)
                suspected.values = values_of_main_thread()
                self._recorder.point(suspected)
        if self._others is not None:
            self._others.tell_over()
            self._others.look(self._main.since_ns, now)
        self._requests.answer(self._recorder)

    def _resume(self) -> None:
        if not self._hang.is_told:
            self._main.begin_again()
        if self._others is not None:
            self._others.resume()


class _Rounds:
    """What the thread does, round by round."""

    def __init__(self, file: LedgerFile, session: Session, after: float, daemon: Optional[Daemon]) -> None:
        self._words = file.words
        self._file = file
        self._recorder = session.recorder
        self._states = session.states
        self._process = session.process
        self._requests = Requests(session.process.folder)
        self._hang = Hang(after)
        self._pauses = Pauses(after)
        self._others = Unled(file.path, session.process.folder, after, session.recorder)
        self._interval, self._due = min(_INTERVAL, after / _PARTS), 0
        self._main = MainThread()
        interval = self._interval if file.is_file else min(_FLUSH, self._interval)
        self.daemon = daemon or Daemon(self._wake, interval)
        self.daemon.turn_to(self._wake, interval)
        self.daemon.at_end = self._stop_beating

    def _wake(self) -> None:
        with suppress(ValueError):  # The map is closed.
            self._file.beat()
        resumed = self._pauses.resumed(self.daemon)
        if resumed is not None:
            self._recorder.point(resumed)
            self._resume()
        flushed(self._file)
        now = self.daemon.woke
        if now >= self._due:
            self._due = now + int((self._interval - _FLUSH / 2) * 1e9)  # The thread wakes at whole intervals, or somewhat later.
            self._look(now)

    def _stop_beating(self) -> None:
        with suppress(ValueError):
            self._file.beat(runs=False)

    def _resume(self) -> None:
        """Begin to count here: for everybody who reads the ledger this is a movement, unless it was told before that nothing moves."""
        if not self._hang.is_told:
            self._main.begin_again()
            with suppress(ValueError):
                self._words[_MOVED] = time.monotonic_ns()
        self._others.resume()

    def _look(self, now: int) -> None:
        try:
            moved = int(self._words[_MOVED] or self._words[_MADE])
        except ours(ValueError):
            if self.daemon.ending:  # The map is closed.
                return
            raise
        self.tell_over()
        if now - moved >= self._interval * 1e9:
            self._main.look()
        suspected = self._suspected(moved, now)
        if suspected is not None:
            self._recorder.point(suspected)
            self._states.note("hang", always=True)
        self._states.look()
        self._others.look(moved, now)
        self._requests.answer(self._recorder)

    def tell_over(self) -> None:
        """Write that a hang is over, if it was reported and the process has moved since."""
        self._others.tell_over()
        over = self._hang.over(int(self._words[_MOVED] or self._words[_MADE]))
        if over is not None:
            self._recorder.point(over)

    def _suspected(self, moved: int, now: int) -> Optional[schema.Event]:
        since = (now - moved) / 1e9
        if not self._hang.is_due(self._pauses.counted(moved, now)):
            return None
        where = standing(self._file)
        waited_for = _has_group() and (self._process.rank_info.world_size or 0) > 1
        self._hang.pass_on(reported=bool(where.operation or where.during or waited_for))
        if not (where.operation or where.during or waited_for):
            return None
        still = max(0.0, min(since, (now - self._main.since_ns) / 1e9))
        stacks = thread_stacks(threads.get_ident())
        suspected = schema.HangSuspected(since=since, still=still, children=self._main.children(), threads=stacks, **where._asdict())
        suspected.values = values_of_main_thread()
        return suspected


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
            stacks = thread_stacks(threads.get_ident())
            recorder.point(schema.Stacks(request=number, threads=stacks, values=values_of_main_thread()))

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
        numbers = sorted(set(self._numbers()) - self._known)
        self._known.update(numbers)
        return numbers

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
