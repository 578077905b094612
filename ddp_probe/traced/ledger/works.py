"""Asynchronous work: its record stays open until wait() has returned, or is_completed() has said yes; nothing here keeps work alive.

Work that goes before that was dropped, unless others can wait for it unseen: through its future, or in a library. Its reference then goes into a
queue, by C code: what a signal handler of the job's raises in a weak reference's callback is printed and lost. The next call looks into the queue,
or the watcher's thread.

Work.wait is patched when the first asynchronous call is made, and not through the ordinary machinery: each synchronous collective calls it too,
and would pay for a whole dispatch. For work that nobody asked to wait for it costs one look into a dictionary.
"""

import collections
import sys
import time
import types
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import HEADER, RECORD
from ddp_probe.shared.ours import must_pass, ours, suppress
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.shared.own_code import foreign, framework
from ddp_probe.traced.facts.call_site import BETWEEN, PROBE, module_of
from ddp_probe.traced.ledger.calls import Here, broken
from ddp_probe.traced.ledger.groups import Row, add_wait
from ddp_probe.traced.patching import Entry, Switch, Target
from ddp_probe.traced.patching.code_swap import leave
from ddp_probe.traced.patching.compiler import hide
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.patching.slot import MISSING, Slot, locate
from ddp_probe.traced.record.ledger_memory import LedgerFile

_MODULE = "torch._C._distributed_c10d"
METHODS = ("wait", "is_completed", "get_future")
"""The methods of a work that are watched."""
_LEFT, _WAITED, _MOVED = RECORD.word("left"), RECORD.word("waited_ns"), HEADER.word("moved_ns")


_TORCHS_OWN = ("torch.distributed.distributed_c10d", "torch.distributed.c10d_logger")
_BETWEEN = (*BETWEEN, *PROBE)
_FRAMES = (None,) * 30
_CODES = 10_000
_UNKNOWN: Any = object()


class _Issued(weakref.ref):  # type: ignore[type-arg]  # Python 3.8 cannot subscript it.
    """A reference to work that somebody is to wait for, with the place of its record."""

    __slots__ = ("at", "key", "record", "shared", "sums")

    key: int
    record: int
    at: int
    sums: Row
    shared: bool
    """Somebody else may wait for it, unseen by Python: a library made the call, or its future was taken."""


class Works:
    """The work of this process that is known to be under way, by id()."""

    def __init__(self, file: LedgerFile, switch: Switch, here: Here, slow: Callable[[int, int, int], None]) -> None:
        self._pending: Dict[int, _Issued] = {}
        self._enter, self._close = _writers(file.words, switch, here, slow)
        self._gone: Deque[_Issued] = collections.deque()
        self._kind: Any = getattr(sys.modules.get(_MODULE), "Work", None)
        self._placed: List[Any] = []
        self._tried = False
        self._whose: Dict[int, Optional[bool]] = {}
        self._kept: List[types.CodeType] = []

    def issued(self, index: int, at: int, work: Any, sums: Row) -> bool:
        """Take note of work; False for what cannot be waited for, such as the None of a rank outside the group."""
        if self._kind is None or not issubclass(type(work), self._kind):
            return False
        if not self._tried:
            self._patch()
        if self._gone:  # The address of the work may be that of work that has gone.
            self.look()
        try:
            made = _Issued(work, self._gone.append)
        except ours(TypeError):
            return False
        made.key = key = id(work)
        made.record, made.at, made.sums = index, at, sums
        made.shared = self._is_a_librarys(sys._getframe(2))
        self._pending[key] = made
        return True

    def look(self) -> None:
        """Close what has gone since the last look. An exception may come at any instruction, and another thread may look, too."""
        gone, pending = self._gone, self._pending
        try:
            for issued in tuple(gone):
                key = getattr(issued, "key", 0)
                if pending.get(key) is issued:
                    self._close(issued, schema.RETURNED if issued.shared else schema.DROPPED)
                    later = pending.pop(key, None)
                    if later is not issued and later is not None:
                        pending[key] = later
                with suppress(ValueError):  # The other thread has been here.
                    gone.remove(issued)
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise

    def _is_a_librarys(self, frame: Optional[types.FrameType]) -> bool:
        """Tell whether the call was not made by the job's code: what a library does with its work is not seen, as DDP waits for some in C++."""
        whose = self._whose.get
        for _ in _FRAMES:
            if frame is None:
                break
            found = whose(id(frame.f_code), _UNKNOWN)
            if found is not None:
                return found if found is not _UNKNOWN else self._learn(frame)
            frame = frame.f_back
        return False

    def _learn(self, frame: types.FrameType) -> bool:
        """Take note of this code, and look further outwards if others have called it for theirs."""
        if len(self._kept) >= _CODES:
            self._whose.clear()
            self._kept.clear()
        name = module_of(frame)
        top = name.partition(".")[0]
        between = name in _TORCHS_OWN or top in _BETWEEN
        found = None if between else framework(top) or foreign(frame.f_code.co_filename)
        self._kept.append(frame.f_code)
        self._whose[id(frame.f_code)] = found
        return self._is_a_librarys(frame.f_back) if found is None else found

    def _patch(self) -> None:
        self._tried = True
        for name, make in zip(METHODS, (self._waiting, self._asking, self._sharing)):
            target = Target(_MODULE, "Work." + name)
            found = locate(target)
            if not isinstance(found, str) and found[0].existed:
                slot, raw = found
                function = _like(raw, make(raw))
                if function is None:
                    continue
                self._placed.append((target, slot, raw, function))
                _write(slot, function)

    def undo(self) -> List[Entry]:
        """Put the methods back."""
        self.look()
        self._pending.clear()
        entries = []
        while self._placed:
            entries.append(_back(*self._placed[-1]))
            self._placed.pop()  # Afterwards: it is found again if a signal handler of the job's raises in between.
        self._tried = False
        return entries

    def _waiting(self, original: Any) -> Callable[..., Any]:
        pending, enter, over, gone, look = self._pending, self._enter, self._over, self._gone, self.look

        def wait(self_: Any, *args: Any, **kwargs: Any) -> Any:
            issued = None
            try:
                if gone:
                    look()
                issued = pending.get(id(self_))
                if issued is None or issued() is not self_:
                    return original(self_, *args, **kwargs)
                enter(issued)
                result = original(self_, *args, **kwargs)
                over(issued, self_, schema.RETURNED)
                issued = None  # Nothing is put into the queue when the work goes.
                return result
            except BaseException:
                try:
                    over(issued, self_, schema.RAISED)
                finally:
                    leave(wait.__code__)
                raise

        return wait

    def _asking(self, original: Any) -> Callable[..., Any]:
        pending = self._pending

        def is_completed(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(self_, *args, **kwargs)
                if result is True:
                    self._over(pending.get(id(self_)), self_, schema.RETURNED)
                return result
            except BaseException:
                leave(is_completed.__code__)
                raise

        return is_completed

    def _sharing(self, original: Any) -> Callable[..., Any]:
        pending = self._pending

        def get_future(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(self_, *args, **kwargs)
                issued = pending.get(id(self_))
                if issued is not None and issued() is self_:
                    issued.shared = True
                return result
            except BaseException:
                leave(get_future.__code__)
                raise

        return get_future

    def _over(self, issued: Optional[_Issued], work: Any, state: int) -> None:
        try:
            if issued is not None and issued() is work and self._pending.get(issued.key) is issued:
                self._close(issued, state)  # First: work that is interrupted here is still known when it goes.
                self._pending.pop(issued.key, None)
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise


def _writers(  # noqa: C901  # Flat.
    words: Any, switch: Switch, here: Here, slow: Callable[[int, int, int], None]
) -> Tuple[Callable[[_Issued], None], Callable[[_Issued, int], None]]:
    """Return what writes into the record of work that its wait() has begun, and that it is over."""
    clock = time.monotonic_ns

    def enter(issued: _Issued) -> None:
        try:
            at = issued.at
            if switch.on and words[at] == issued.record and not words[at + _LEFT] & 3:
                words[at + _WAITED] = words[_MOVED] = clock()
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
        except ours(Exception) as exc:  # another thread has closed the file this moment
            if switch.on:
                broken(switch, exc)

    def close(issued: _Issued, state: int) -> None:
        try:
            at = issued.at
            if switch.on and words[at] == issued.record and not words[at + _LEFT] & 3:
                now = clock()
                words[at + _LEFT] = now << 2 | state
                words[_MOVED] = now
                waited = words[at + _WAITED]
                if waited and state == schema.RETURNED and issued() is not None:  # The watcher's thread, too, closes what has gone.
                    if add_wait(issued.sums, now - waited):
                        guard.run("collectives", slow, at, issued.record, now - waited)
                    here.thread.waited += now - waited
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
        except ours(Exception) as exc:
            if switch.on:
                broken(switch, exc)

    return enter, close


def _write(slot: Slot, value: Any) -> None:
    """Put a method into a class of pybind11, whose metaclass has to do it."""
    setattr(slot.holder, slot.attribute, value)


def _like(raw: Any, function: Any) -> Any:
    """Let our function say of itself what the method said, and be of its type, by which torch.compile tells it; None if that cannot be done."""
    hide(function.__code__)
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        value = getattr(raw, name, MISSING)
        if value is not MISSING:
            setattr(function, name, value)
    ctypes: Any = sys.modules.get("ctypes")  # torch has imported it
    if type(raw) is types.FunctionType or ctypes is None:
        return None
    held = ctypes.py_object
    return ctypes.PYFUNCTYPE(held, held)(("PyInstanceMethod_New", ctypes.pythonapi))(function)


def _back(target: Target, slot: Slot, raw: Any, function: Any) -> Entry:
    found = slot.read()
    if found is function:
        _write(slot, raw)
        return Entry(target, slot.label, "attribute", slot.read() is raw, "The original is back.")
    if found is raw:
        return Entry(target, slot.label, "attribute", True, "Somebody else put it back.")
    return Entry(target, slot.label, "overwritten", False, "Somebody put something else there, which stays.")
