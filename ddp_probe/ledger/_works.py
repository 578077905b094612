"""Asynchronous work: its record stays open until wait() has returned, or is_completed() has said yes; nothing here keeps work alive.

Work that goes before that was dropped, unless others can wait for it unseen: through its future, or in a library.

Work.wait is patched when the first asynchronous call is made, and not through the ordinary machinery: each synchronous collective calls it too,
and would pay for a whole dispatch. For work that nobody asked to wait for it costs one look into a dictionary.
"""

import sys
import time
import types
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ddp_probe import ledger_schema as schema
from ddp_probe.facts.call_site import BETWEEN, PROBE, module_of
from ddp_probe.ledger._calls import broken
from ddp_probe.ledger._sums import Row, add_wait
from ddp_probe.ledger._threads import Here
from ddp_probe.ours import ours
from ddp_probe.own_code import foreign, framework
from ddp_probe.patching import Entry, Switch, Target
from ddp_probe.patching.intercept.code_swap import hide, leave
from ddp_probe.patching.slot import MISSING, Slot, locate
from ddp_probe.record.ledger import LedgerFile, word

_MODULE = "torch._C._distributed_c10d"
_LEFT, _WAITED = (schema.offset(schema.RECORD, name) // 8 for name in ("left", "waited_ns"))
_MOVED = word("moved_ns")


_TORCHS_OWN = ("torch.distributed.distributed_c10d", "torch.distributed.c10d_logger")
_BETWEEN = (*BETWEEN, *PROBE)
_FRAMES = 30


class _Issued(NamedTuple):
    """Work that somebody is to wait for, and where its record is."""

    ref: Any
    record: int
    at: int
    sums: Row
    shared: bool  # Somebody else may wait for it, unseen by Python: a library made the call, or its future was taken.


class Works:
    """The work of this process that is known to be under way, by id()."""

    def __init__(self, file: LedgerFile, switch: Switch, here: Here) -> None:
        self._words = file.words
        self._here = here
        self._switch = switch
        self._pending: Dict[int, _Issued] = {}
        self._kind: Any = getattr(sys.modules.get(_MODULE), "Work", None)
        self._placed: List[Any] = []
        self._tried = False
        self._hidden = False

    def issued(self, index: int, at: int, work: Any, sums: Row) -> bool:
        """Take note of work; False for what cannot be waited for, such as the None of a rank outside the group."""
        if self._kind is None or not issubclass(type(work), self._kind):
            return False
        if not self._tried:
            self._patch()
        key = id(work)
        try:
            ref = weakref.ref(work, self._teller(key, index))
        except ours(TypeError):
            return False
        self._pending[key] = _Issued(ref, index, at, sums, _is_a_librarys(sys._getframe(2)))
        return True

    def _teller(self, key: int, index: int) -> Callable[[Any], None]:
        def gone(_: Any) -> None:
            self._dropped(key, index)

        if not self._hidden:  # one code for all of them
            self._hidden = True
            hide(gone.__code__)
        return gone

    def _dropped(self, key: int, index: int) -> None:
        found = self._pending.get(key)
        if found is not None and found.record == index:
            self._put(found, _LEFT, schema.RETURNED if found.shared else schema.DROPPED)
            self._pending.pop(key, None)

    def _put(self, issued: _Issued, field: int, state: int = 0) -> None:
        """Write the time of now into a record, with the state if the field has room for one."""
        try:
            if self._switch.on and self._words[issued.at] == issued.record and not self._words[issued.at + _LEFT] & 3:
                now = time.monotonic_ns()
                self._words[issued.at + field] = now << 2 | state if field == _LEFT else now
                self._words[_MOVED] = now
                waited = self._words[issued.at + _WAITED]
                if state == schema.RETURNED and waited:
                    add_wait(issued.sums, now - waited)
                    self._here.thread.waited += now - waited
        except ours(Exception) as exc:  # another thread has closed the file this moment
            if self._switch.on:
                broken(self._switch, exc)

    def _patch(self) -> None:
        self._tried = True
        for name, make in (("wait", self._waiting), ("is_completed", self._asking), ("get_future", self._sharing)):
            target = Target(_MODULE, "Work." + name)
            found = locate(target)
            if not isinstance(found, str) and found[0].existed:
                slot, raw = found
                function = _like(raw, make(raw))
                if function is None:
                    continue
                _write(slot, function)
                self._placed.append((target, slot, raw, function))

    def undo(self) -> List[Entry]:
        """Put the methods back."""
        placed, self._placed, self._tried = self._placed, [], False
        self._pending.clear()
        return [_back(*one) for one in placed]

    def _waiting(self, original: Any) -> Callable[..., Any]:
        pending = self._pending

        def wait(self_: Any, *args: Any, **kwargs: Any) -> Any:
            issued = pending.get(id(self_))
            try:
                if issued is None:
                    return original(self_, *args, **kwargs)
                self._put(issued, _WAITED)
                result = original(self_, *args, **kwargs)
            except BaseException:
                self._over(issued, self_, schema.RAISED)
                leave(wait.__code__)
                raise
            self._over(issued, self_, schema.RETURNED)
            return result

        return wait

    def _asking(self, original: Any) -> Callable[..., Any]:
        pending = self._pending

        def is_completed(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(self_, *args, **kwargs)
            except BaseException:
                leave(is_completed.__code__)
                raise
            if result is True:
                self._over(pending.get(id(self_)), self_, schema.RETURNED)
            return result

        return is_completed

    def _sharing(self, original: Any) -> Callable[..., Any]:
        pending = self._pending

        def get_future(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(self_, *args, **kwargs)
            except BaseException:
                leave(get_future.__code__)
                raise
            issued = pending.get(id(self_))
            if issued is not None and issued.ref() is self_:
                pending[id(self_)] = issued._replace(shared=True)
            return result

        return get_future

    def _over(self, issued: Optional[_Issued], work: Any, state: int) -> None:
        if issued is not None and issued.ref() is work and self._pending.get(id(work)) is issued:
            self._put(issued, _LEFT, state)  # First: work that is interrupted here is still known when it goes.
            self._pending.pop(id(work), None)


def _is_a_librarys(frame: Optional[types.FrameType]) -> bool:
    """Tell whether the call was not made by the job's own code: what a library does with its work is not seen, as DDP waits for some in C++."""
    for _ in range(_FRAMES):
        if frame is None:
            break
        name = module_of(frame)
        top = name.partition(".")[0]
        if name not in _TORCHS_OWN and top not in _BETWEEN:
            return framework(top) or foreign(frame.f_code.co_filename)
        frame = frame.f_back
    return False


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
