"""The lines of collectives in a rank's log: a barrier before and after it, another call once it raised or was slow.

The ledger has every call. These lines are for somebody with grep, so they are few: of the calls of one line
of the job the first hundred are written, and then fewer.
"""

import json
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, Dict, List, Optional, Tuple

from ddp_probe.shared import ledger_schema, schema
from ddp_probe.shared.ledger_codec import RECORD
from ddp_probe.shared.ours import must_pass
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.traced.facts.call_site import call_path, module_of
from ddp_probe.traced.facts.failure import failure
from ddp_probe.traced.ledger.calls import CALL, Frames, Here
from ddp_probe.traced.ledger.groups import Groups
from ddp_probe.traced.patching import Switch
from ddp_probe.traced.patching.code_swap import Hooks
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.record import Span
from ddp_probe.traced.record.ledger_memory import LedgerFile
from ddp_probe.traced.record.sparse import CallCounts, Line, line_of
from ddp_probe.traced.session import Session

_OPERATIONS = ledger_schema.names(ledger_schema.OPERATIONS)
_CODES = ledger_schema.codes(ledger_schema.OPERATIONS)
BARRIERS = (_CODES["barrier"], _CODES["monitored_barrier"])
"""The operations that are written before and after."""
_NAME = "collectives"
_PLACES = 10_000  # lines that are kept; a program that compiles in a loop has no end of them


class _Barrier:
    """A barrier in which this process is."""

    __slots__ = ("began", "group", "line", "nth", "number", "operation", "site", "span", "through")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.began = self.group = self.nth = self.number = 0
        self.line: Line = ("", "", 0)
        self.site: Optional[schema.Site] = None
        self.through: List[schema.Site] = []
        self.span: Optional[Span] = None


class _Here(threading.local):
    """What this thread has begun to write, and not ended."""

    barrier: Optional[_Barrier] = None


class CallLines:
    """Writes the lines. What the hot path calls here is called only for a call that was slow, or raised."""

    def __init__(self, session: Session, file: LedgerFile, groups: Groups, slow_ns: int) -> None:
        self._recorder = session.recorder
        self._file = file
        self._groups = groups
        self._slow_ns = slow_ns
        self._counts = CallCounts()
        self._described: Dict[int, Dict[str, Any]] = {}
        self._here = _Here()
        self._sites: Dict[Tuple[int, int], Tuple[CodeType, Optional[schema.Site]]] = {}

    def hooks(  # noqa: C901  # Three closures.
        self, calls: Hooks, switch: Switch, here: Here, frames: Frames
    ) -> Hooks:
        """Return what watches a barrier, around what watches any call."""
        frame_of, clock, slow_ns = sys._getframe, time.monotonic_ns, self._slow_ns

        def begin(op: int, payload: Any, peer: Any, group_peer: Any, group: Any, is_async: Any) -> Any:
            if not switch.on:
                return None
            barrier = None
            try:
                barrier = _Barrier(_OPERATIONS[op])
                if not here.thread.outer or not frames.around(frame_of(1).f_back, CALL):
                    guard.run(_NAME, self._begin, barrier, group, frame_of(1))
            except RecursionError as exc:
                try:
                    passes = must_pass(exc)
                except RecursionError:
                    passes = FRAGILE and not forgotten()
                if passes:
                    guard.run(_NAME, self._close)
                    raise
            except BaseException:  # a signal handler of the job's, in the middle of us: the call is not made
                guard.run(_NAME, self._close)
                raise
            try:
                return barrier, calls.begin(op, payload, peer, group_peer, group, is_async, 2)
            except BaseException:  # the same
                guard.run(_NAME, self._close)
                raise

        def end(token: Any, result: Any) -> None:
            if token is None:
                return
            barrier, inner = token
            calls.end(inner, result)
            try:
                is_slow = barrier is not None and barrier.began and clock() - barrier.began > slow_ns
                if switch.on and (is_slow or (barrier is not None and barrier.span is not None)):
                    guard.run(_NAME, self._end, barrier)
            except RecursionError as exc:
                try:
                    passes = must_pass(exc)
                except RecursionError:
                    passes = FRAGILE and not forgotten()
                if passes:
                    raise

        def error(token: Any) -> None:
            barrier, inner = (None, None) if token is None else token
            try:
                calls.error(inner, 3)
            finally:
                if switch.on and barrier is not None:
                    guard.run(_NAME, self._raised, barrier)
                elif switch.on and not frames.around(frame_of(2).f_back, CALL):
                    guard.run(_NAME, self._close)

        return Hooks(begin, end, error)

    def slow(self, at: int, index: int, ns: int) -> None:
        """Write a call that took longer than DDP_PROBE_SLOW; `at` is where its record is, in words."""
        event = self._recorded(at, index)
        if event is None:
            return
        nth = self._counts.count(line_of("slow " + event.operation, event.site))
        if self._counts.is_written(nth):
            event.nth = self._counts.many(nth)
            self._recorder.write(event, "end", {"seconds": ns / 1e9})

    def raised(self, at: int, index: int, ns: int) -> None:
        """Write a call that has raised."""
        event, exc = self._recorded(at, index), sys.exc_info()[1]
        if event is None or exc is None:
            return
        if self._counts.is_failure_written(line_of(event.operation, event.site), type(exc)):
            self._recorder.write(event, "error", {"seconds": ns / 1e9, "failure": failure(exc)})

    def _begin(self, barrier: _Barrier, group: Any, frame: FrameType) -> None:
        self._close()
        barrier.site, barrier.through = self._place(frame)
        barrier.line = line_of(barrier.operation, barrier.site)
        barrier.nth = self._counts.count(barrier.line)
        known = self._groups.known(group)
        barrier.number, barrier.group = known.calls.used + 1, known.number
        barrier.began = time.monotonic_ns()
        if self._counts.is_written(barrier.nth):
            barrier.span = self._recorder.span(self._event(barrier))
            self._here.barrier = barrier
            barrier.span.begin()

    def _end(self, barrier: _Barrier) -> None:
        if barrier.span is not None:
            barrier.span.end(self._event(barrier))
            self._here.barrier = None
        else:
            self._recorder.write(self._event(barrier), "end", {"seconds": _since(barrier)})

    def _close(self) -> None:
        """Write the end of a barrier that an exception has left between two steps of ours."""
        if self._here.barrier is not None:
            self._raised(self._here.barrier)

    def _raised(self, barrier: _Barrier) -> None:
        exc = sys.exc_info()[1]
        if barrier.span is not None:
            barrier.span.error(schema.Failure() if exc is None else failure(exc), self._event(barrier))
            self._here.barrier = None
        elif exc is not None and barrier.began and self._counts.is_failure_written(barrier.line, type(exc)):
            more = {"seconds": _since(barrier), "failure": failure(exc)}
            self._recorder.write(self._event(barrier), "error", more)

    def _event(self, barrier: _Barrier) -> schema.Collective:
        event = schema.Collective(operation=barrier.operation, number=barrier.number, site=barrier.site)
        event.through, event.nth = barrier.through, self._counts.many(barrier.nth)
        self._describe(event, barrier.group)
        return event

    def _place(self, inside: FrameType) -> Tuple[Optional[schema.Site], List[schema.Site]]:
        """Return the job's line and the way from it; a line that calls torch itself is looked up once."""
        frame = _caller(inside)
        if frame is None:
            return None, []
        key = id(frame.f_code), frame.f_lasti
        known = self._sites.get(key)
        if known is not None:
            return known[1], []
        site, through = call_path(frame)
        if not through and len(self._sites) < _PLACES:
            self._sites[key] = frame.f_code, site  # With the code, so that no other one gets its id.
        return site, through

    def _recorded(self, at: int, index: int) -> Optional[schema.Collective]:
        """Return a call as its record has it; None if the ring has forgotten it, and for a barrier, which has its own lines."""
        row = RECORD.read(self._file.map, at << 3)
        if row["index"] != index or row["op"] in BARRIERS:
            return None
        site, through = self._place(sys._getframe(1))
        event = schema.Collective(operation=_OPERATIONS[row["op"]], number=row["seq"])
        event.site, event.through = site, through
        self._describe(event, row["group"])
        return event

    def _describe(self, event: schema.Collective, group: int) -> None:
        """Put the group into an event."""
        described = self._described.get(group)
        if described is None:
            text = self._file.text_of(ledger_schema.GROUP, group)
            described = self._described[group] = json.loads(text) if text else {}
        event.group, event.ranks = described.get("id", ""), described.get("ranks", "")
        event.size = described.get("size")


def _since(barrier: _Barrier) -> float:
    return (time.monotonic_ns() - barrier.began) / 1e9


def _caller(inside: FrameType) -> Optional[FrameType]:
    """Return the frame that has called torch.distributed: what lies below it says nothing of the job."""
    frame: Optional[FrameType] = inside
    while frame is not None and module_of(frame).startswith(("ddp_probe.traced.", "torch.distributed.")):
        frame = frame.f_back
    return frame
