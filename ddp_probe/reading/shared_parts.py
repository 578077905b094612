"""Makes equal parts of many processes one object: ten thousand ranks write the same events, but for who wrote them and when."""

from array import array
from typing import Any, Dict, Iterable, List, Tuple, Type, Union

import msgspec

from ddp_probe.reading.logged_call import KeptKind
from ddp_probe.shared import schema

_MANY = 1 << 12  # At most this many different values of one kind are remembered.
_TRIED = 1 << 9  # After this many, a kind of value of which fewer than one in eight was known is not looked up any more.
_COMPARED = (schema.HangSuspected, schema.Stacks)  # Compared by the clock that the ledger uses too.
_PHASES = {name: name for name in ("begin", "end", "error", "point")}
_TAKEN_OUT = frozenset(("phase", "ts", "mono_ns", "seq", "rank", "local_rank", "world_size", "host", "pid", "run", "span", "seconds"))
_NUMBERS = (int, float, bool)
_NOTHING: Tuple[List[Any], Dict[Any, Any]] = ([], {})  # SharedParts by all; never modified.
_ENCODE = msgspec.msgpack.Encoder().encode

Part = Union[List[Any], Dict[Any, Any], msgspec.Struct]


class _Known:
    """The different values of one kind: an event's name, or a field of it."""

    __slots__ = ("_hits", "_tried", "_values", "is_whole", "met", "pays")

    def __init__(self) -> None:
        self._values: Dict[Any, Any] = {}
        self._tried = self._hits = 0
        self.pays = True  # Whether values are likely to be known: the files that ranks load may all be different.
        self.is_whole = True  # Whether no value so far had parts that can be shared separately.
        self.met = False  # Whether there was a value lately.

    def equal(self, key: Any, value: Any) -> Any:
        """Return the value of this key that was seen first."""
        first = self._values.get(key)
        if first is not None:
            self._hits += 1
        elif len(self._values) < _MANY:
            self._values[key] = value
        self._tried += 1
        if not self._tried % _TRIED:
            self.pays = self._hits * 8 > self._tried
        return value if first is None else first


class _Plan:
    """The fields of a kind that hold something to share. A field that has held nothing for long, or nothing twice, is not looked at any more."""

    __slots__ = ("_uses", "fields")

    def __init__(self, names: Iterable[str]) -> None:
        self.fields = [(name, _Known()) for name in names]
        self._uses = 0

    def used(self) -> None:
        """Count a use."""
        self._uses += 1
        if not self._uses % _TRIED:
            met = [(name, part) for name, part in self.fields if part.met]
            self.fields = [(name, part) for name, part in met if part.pays or not part.is_whole]
            for _, part in self.fields:
                part.met = False


class SharedParts:
    """The parts that the processes of one run share."""

    def __init__(self) -> None:
        self._events: Dict[Tuple[type, str], _Known] = {}
        self._plans: Dict[type, _Plan] = {}
        self._names: Dict[str, _Known] = {}
        self._kinds: Dict[Tuple[Tuple[str, KeptKind], ...], Dict[str, KeptKind]] = {}
        self._lines: Dict[bytes, array[int]] = {}
        self.sequences: Dict[bytes, array[int]] = {}  # Collectives of ledgers from folds.

    def event(self, event: schema.Event) -> schema.Event:
        """Return an event without who wrote it and when, which its process and its call know."""
        lighten(event)
        try:
            return self.lightened(event)
        except OverflowError:  # A number of more than 64 bits, which no probe writes: it can be read, and not be encoded.
            return self.lightened(msgspec.convert(_bounded(msgspec.to_builtins(event)), type(event)))

    def lightened(self, event: schema.Event) -> schema.Event:
        """Return the known event that equals this one, if any."""
        of = (type(event), event.phase)
        part = self._events.get(of)
        if part is None:
            part = self._events[of] = _Known()
        if not part.pays:
            self._share_parts(event)
            return event
        equal: schema.Event = part.equal(_ENCODE(event), event)
        if equal is event:
            self._share_parts(event)
        return equal

    def kinds(self, kinds: Dict[str, KeptKind]) -> Dict[str, KeptKind]:
        """Return equal kinds if there are some."""
        return self._kinds.setdefault(tuple(kinds.items()), kinds)

    def lines(self, lines: "array[int]") -> "array[int]":
        """Return equal line numbers if there are some."""
        key = lines.tobytes()
        if len(self._lines) >= _MANY:
            return self._lines.get(key, lines)
        return self._lines.setdefault(key, lines)

    def _share_parts(self, of: msgspec.Struct) -> None:
        """Share the values in the fields of an event, or of a part of it, that has no equal."""
        plan = self._plan(type(of))
        for name, part in plan.fields:
            value = getattr(of, name)
            if value is None or value == "" or value.__class__ in _NUMBERS:
                continue
            part.met = True
            if value.__class__ is not str:
                setattr(of, name, self._part(value, part) if value else _NOTHING[isinstance(value, dict)])
            elif part.pays:
                setattr(of, name, part.equal(value, value))
        plan.used()

    def _plan(self, kind: Type[msgspec.Struct]) -> _Plan:
        plan = self._plans.get(kind)
        if plan is None:
            taken_out = _TAKEN_OUT if issubclass(kind, schema.Event) else frozenset()
            plan = self._plans[kind] = _Plan(name for name in kind.__struct_fields__ if name not in taken_out)
        return plan

    def _part(self, value: Part, shared: _Known) -> Part:
        if shared.pays:
            equal: Part = shared.equal(_ENCODE(value), value)
            if equal is not value:
                return equal
        shared.is_whole = False
        if isinstance(value, msgspec.Struct):
            self._share_parts(value)
        elif isinstance(value, dict):
            for name, text in value.items():
                if text.__class__ is str:
                    value[name] = self._named(name).equal(text, text)
        return value

    def _named(self, name: str) -> _Known:
        part = self._names.get(name)
        if part is None:
            part = self._names[name] = _Known()
        return part

    def text(self, text: str) -> str:
        """Return an equal text if there is one."""
        equal: str = self._named("").equal(text, text)
        return equal


def _bounded(value: Any) -> Any:
    """Return a value in which each integer fits into 64 bits."""
    if isinstance(value, dict):
        return {name: _bounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_bounded(part) for part in value]
    return max(-(1 << 63), min(value, (1 << 63) - 1)) if type(value) is int else value


def lighten(event: schema.Event) -> None:
    """Take out of an event who wrote it and when."""
    event.phase = _PHASES.get(event.phase, event.phase)
    event.ts = event.host = event.run = ""
    event.seq, event.pid = -1, 0
    event.rank = event.local_rank = event.world_size = event.span = event.seconds = None
    if not isinstance(event, _COMPARED):
        event.mono_ns = 0
