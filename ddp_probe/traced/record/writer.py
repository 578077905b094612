"""One process's file over its life: opened at the first line, opened again where it was lost, bounded, patient.

The lock is re-entrant, because a signal handler of the job may log in the middle of our write, and belongs to one
process: after a fork the child has another writer, so that no lock is held across it.
"""

import itertools
import os
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Protocol, Tuple

from ddp_probe.shared import schema, threads
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.record import chain, files
from ddp_probe.traced.record.files import few_descriptors
from ddp_probe.traced.record.render import decoders

_RESERVE = 1024  # room for the line that says that the file is full
_LAST = 64 << 10  # room for how it ended: the last line, and the last call that failed; a quarter of a file that is to be small
_BACK_OFF = 1.0  # seconds until a write is tried again after one has failed
_PATIENCE = 5.0  # seconds that a thread waits for another's write to a sick file system before it goes ahead

_Line = Tuple[schema.Event, str, Dict[str, Any]]
_ENDS = (schema.ProcessEnd, schema.LauncherEnd)


class FileSpec:
    """The path of a file and its first line; the same before and after a fork."""

    def __init__(self, directory: str, stem: Callable[[], str], first: Optional[Callable[[], schema.Event]], max_bytes: int, strict: bool) -> None:
        self.directory = directory
        self.stem = stem
        self.first = first
        self.max_bytes = max_bytes
        self.strict = strict
        if strict:
            decoders()


class Writer:
    """Gets lines into the file, or raises what hindered it once the loss is counted."""

    def __init__(self, plan: FileSpec, envelope: Dict[str, Any]) -> None:
        self.lines = 0
        self.lost = 0
        self.pid = os.getpid()
        self._plan = plan
        self._envelope = {**envelope, "pid": self.pid}
        self._lock = threads.RLock()
        self._file: Optional[files.LineFile] = None
        self._log: Any = None
        self._seq = itertools.count()
        self._written = itertools.count(1)
        self._start: Optional[schema.Event] = None  # what first() answered
        self._start_due = False
        self._spent = 0  # bytes in files before this one, and in models
        self.full = False
        self._told_full = False
        self._last_failure: List[_Line] = []
        self._last_room = min(_LAST, plan.max_bytes // 4)
        self._retry_at = 0.0
        self._opening = False
        self._waiting: Deque[_Line] = deque()

    @property
    def path(self) -> Optional[str]:
        """The file, once it is open."""
        return None if self._file is None else self._file.path

    def bind(self, envelope: Dict[str, Any]) -> None:
        """Change what every following line carries."""
        self._envelope.update(envelope)
        if self._file is not None:
            self._log = chain.line_logger(self._file, _known(self._envelope))

    def close(self) -> None:
        """Let go of the descriptor; the next line opens the same file again."""
        if self._file is not None:
            self._file.close()

    def start(self) -> None:
        """Write the first line, which needs no other."""
        self._reach(None)

    def write(self, event: schema.Event, phase: str, more: Dict[str, Any]) -> None:
        """Write one line; in a full file only how it ended."""
        if self.full and type(event) in _ENDS:
            self._make_room()
        self._reach((event, phase, more))

    def keep(self, lines: List[_Line]) -> None:
        """Keep the last call that failed for the end of a full file."""
        self._last_failure = [(event, phase, {**chain.now(), **more}) for event, phase, more in lines]

    def _make_room(self) -> None:
        """Open the file once more, for the lines that were kept and the last one."""
        if self._file is not None:
            self._file.room += self._last_room
            self._last_room = 0
            self.full = False
        lines, self._last_failure = self._last_failure, []
        for line in lines:
            self._reach(line)

    def landed(self) -> bool:
        """Tell whether a line whose writing a signal handler of the job's has interrupted is in the file."""
        return self._file is not None and self._file.landed()

    def _reach(self, line: Optional[_Line]) -> None:
        try:
            self._reach_locked(line)
        except ours(Exception):
            raise
        except BaseException:  # raised by the job's handler, perhaps when the lock had been taken: never wait for that one again
            self._lock = threads.RLock()
            raise

    def _reach_locked(self, line: Optional[_Line]) -> None:
        if self._file is not None:
            self._file.line_at = None
        lock = self._take()
        try:
            self._write_held(line)
            if few_descriptors() and not self._opening:
                self.close()
        except ours(files.OutOfRoomError):
            self._fill()
        except ours(OSError):
            self.lost += 1
            self._retry_at = time.monotonic() + _BACK_OFF
            raise
        except ours(Exception):
            self.lost += 1
            raise
        finally:
            lock.release()

    def afford(self, size: int) -> bool:
        """Take bytes for a file beside this one out of the process's allowance; False if there are not enough left."""
        lock = self._take()
        try:
            used = self._spent + (0 if self._file is None else self._file.size)
            if self.full or used + size > self._plan.max_bytes - _RESERVE - self._last_room:
                self.lost += 1
                return False
            self._spent += size
            if self._file is not None:
                self._file.room -= size
            return True
        finally:
            lock.release()

    def _take(self) -> Any:
        lock = self._lock
        if not lock.acquire(timeout=_PATIENCE):
            lock = self._lock = threads.RLock()  # O_APPEND keeps lines apart without it
            lock.acquire()
        return lock

    def _write_held(self, line: Optional[_Line]) -> None:
        if self._opening:  # first() wrote something, or a signal handler did while the file was being opened
            if line is not None:
                self._waiting.append(line)
            return
        if self.full or time.monotonic() < self._retry_at:
            self._skip()
            return
        if self._file is None or self._start_due or not self._file.intact():
            self._make_ready()
        if self._waiting:
            self._flush()
        if line is not None:
            self._put(line)

    def _flush(self) -> None:
        with suppress(IndexError):  # a signal handler may flush them in the middle of this loop
            while True:
                self._put(self._waiting.popleft())

    def _put(self, line: _Line) -> None:
        event, phase, more = line
        if self._log.line(event, phase, more):
            self.lines = next(self._written)  # += would lose one for good where a signal handler writes in between (Python 3.8)

    def _skip(self) -> None:
        self.lost += 1
        if self._file is not None:
            next(self._seq)  # a gap tells the reader that lines are missing here

    def _make_ready(self) -> None:
        self._opening = True
        try:
            if self._file is None or not self._file.intact():
                self._open()
            if self._start_due:
                self._put((self._first_event(), "point", {}))
                self._start_due = False
        finally:
            self._opening = False

    def _open(self) -> None:
        """Open the file that was lost sight of, or make a new one where its name is gone."""
        old = self._file
        if old is not None:
            old.close()  # first, as the file opened again may get the old number
        opened = None if old is None else old.reopened()
        if opened is None:
            if old is not None:
                self._spent += old.size
            self._file = None
            opened = files.create(self._plan.directory, self._plan.stem(), self._plan.max_bytes - _RESERVE - self._last_room - self._spent)
            self._start_due = self._plan.first is not None
        opened.numbers = self._seq
        self._log = chain.line_logger(opened, _known(self._envelope))
        self._file = opened

    def _first_event(self) -> schema.Event:
        if self._start is None and self._plan.first is not None:
            try:
                self._start = self._plan.first()
            except ours(Exception) as exc:
                if self._plan.strict:
                    raise
                self._start = schema.Fault(probe="record", count=1, failure=schema.Failure(type=type(exc).__name__))
        return self._start or schema.ProcessStart()

    def _fill(self) -> None:
        """Say in the file that it is full, and stop."""
        self.lost += 1
        self.full = True
        if self._file is None or self._told_full:
            return
        self._told_full = True
        self._file.room += _RESERVE
        with suppress(files.OutOfRoomError, OSError):
            self._put((schema.Full(limit=self._plan.max_bytes), "point", {}))


def _known(envelope: Dict[str, Any]) -> Dict[str, Any]:
    """Return what is known of this process: a field without a value is left out of every line."""
    return {name: value for name, value in envelope.items() if value is not None and value != ""}


# Links the event before a call to the event after it.


class SpanRecorder(Protocol):
    """What a call needs of its recorder."""

    writer: Writer

    def write(self, event: schema.Event, phase: str, more: Dict[str, Any]) -> None:
        """Write one line."""

    def keep(self, lines: List[Any]) -> None:
        """Keep lines for the end of a full file."""


class Span:
    """One logged call, whose number links its begin event to its end or error event. It ends only in the process where it began."""

    __slots__ = ("_asked", "_recorder", "_started", "_told", "_writer", "id")

    def __init__(self, recorder: SpanRecorder, number: int, event: schema.Event) -> None:
        self.id = number
        self._recorder: Optional[SpanRecorder] = recorder
        self._asked = event
        self._told = False
        self._writer = recorder.writer
        self._started = time.perf_counter()

    def begin(self) -> None:
        """Write that the call is about to be made; the line is in the file when this returns."""
        recorder = self._recorder
        if recorder is None:
            return
        try:
            recorder.write(self._asked, "begin", {"span": self.id})
            self._told = not recorder.writer.full
        except BaseException:  # a signal handler of the job's: what has not begun does not end
            if not recorder.writer.landed():
                self._recorder = None
            raise

    def end(self, event: Optional[schema.Event] = None) -> None:
        """Write that the call has returned."""
        self._finish("end", event, None)

    def error(self, failure: schema.Failure, event: Optional[schema.Event] = None) -> None:
        """Write that the call has raised."""
        self._finish("error", event, failure)

    def _finish(self, phase: str, event: Optional[schema.Event], failure: Optional[schema.Failure]) -> None:
        seconds = time.perf_counter() - self._started
        recorder, self._recorder = self._recorder, None
        if recorder is None or recorder.writer is not self._writer:
            return
        more: Dict[str, Any] = {"span": self.id, "seconds": round(seconds, 9)}
        if failure is not None:
            more["failure"] = failure
        try:
            answer = type(self._asked)() if event is None else event
            recorder.write(answer, phase, more)
            if failure is not None and recorder.writer.full:
                kept = [(answer, phase, more)]
                if not self._told:
                    kept.insert(0, (self._asked, "begin", {"span": self.id}))
                recorder.keep(kept)
        except BaseException:  # the same: an end that did not reach the file is written by whoever catches this
            if not recorder.writer.landed():
                self._recorder = recorder
            raise
