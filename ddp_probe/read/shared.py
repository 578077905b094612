"""Makes equal parts of many processes one object: ten thousand ranks write the same events, but for who wrote them and when."""

from array import array
from functools import lru_cache
from typing import Any, Dict, List, Optional, Tuple, Type, Union

import msgspec

from ddp_probe import schema
from ddp_probe.read.kept_calls import KeptKind

_MANY = 1 << 12  # At most this many different values of one kind are remembered.
_TRIED = 1 << 9  # After this many, a kind of value of which fewer than one in eight was known is not looked up any more.
_COMPARED = (schema.HangSuspected, schema.Stacks)  # By the clock that the ledger has too.
_PHASES = {name: name for name in ("begin", "end", "error", "point")}
_TAKEN_OUT = frozenset(("phase", "ts", "mono_ns", "seq", "rank", "local_rank", "world_size", "host", "pid", "run", "span", "seconds"))
_NOTHING: Tuple[List[Any], Dict[Any, Any]] = ([], {})  # SharedParts by all; never modified.
_ENCODE = msgspec.msgpack.Encoder().encode

Part = Union[List[Any], Dict[Any, Any], msgspec.Struct]


class _Known:
    """The different values of one kind: an event's name, or a field of it."""

    __slots__ = ("_found", "_hits", "_tried")

    def __init__(self) -> None:
        self._found: Dict[Any, Any] = {}
        self._tried = self._hits = 0

    def get(self, key: Any) -> Any:
        """Return the value of this key, or None."""
        self._tried += 1
        known = self._found.get(key)
        if known is not None:
            self._hits += 1
        return known

    def add(self, key: Any, value: Any) -> None:
        """Remember a value, unless there are too many."""
        if len(self._found) < _MANY:
            self._found[key] = value

    @property
    def pays(self) -> bool:
        """Return whether values are likely to be known: the files that ranks load may all be different."""
        return self._tried < _TRIED or self._hits * 8 > self._tried


class SharedParts:
    """The parts that the processes of one run share."""

    def __init__(self) -> None:
        self._events: Dict[Tuple[type, str], _Known] = {}
        self._parts: Dict[Tuple[type, str], _Known] = {}
        self._names: Dict[str, _Known] = {}
        self._kinds: Dict[Tuple[Tuple[str, KeptKind], ...], Dict[str, KeptKind]] = {}
        self._lines: Dict[bytes, array[int]] = {}
        self.sequences: Dict[bytes, array[int]] = {}  # Of collectives, of ledgers from folds.

    def event(self, event: schema.Event) -> schema.Event:
        """Return an event without who wrote it and when, which its process and its call know."""
        lighten(event)
        return self.lightened(event)

    def lightened(self, event: schema.Event) -> schema.Event:
        """Return an equal event if there is one."""
        known = self._known(self._events, event, event.phase)
        if not known.pays:
            self._share_parts(event)
            return event
        key = _ENCODE(event)
        found: Optional[schema.Event] = known.get(key)
        if found is None:
            self._share_parts(event)
            known.add(key, event)
        return found or event

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
        for name in _fields_of(type(of)):
            value = getattr(of, name)
            if isinstance(value, str):
                if value:
                    setattr(of, name, self._equal(self._known(self._parts, of, name), value))
            elif isinstance(value, (list, dict, msgspec.Struct)):
                setattr(of, name, self._part(value, self._known(self._parts, of, name)) if value else _NOTHING[isinstance(value, dict)])

    def _part(self, value: Part, known: _Known) -> Part:
        key = _ENCODE(value) if known.pays else b""
        found: Optional[Part] = known.get(key) if key else None
        if found is not None:
            return found
        if isinstance(value, dict):
            value = {name: self._value(name, text) for name, text in value.items()}
        elif isinstance(value, msgspec.Struct):
            self._share_parts(value)
        if key:
            known.add(key, value)
        return value

    def _value(self, name: str, value: Any) -> Any:
        return self._equal(self._names.setdefault(name, _Known()), value) if isinstance(value, str) else value

    @staticmethod
    def _equal(known: _Known, text: str) -> str:
        if not known.pays:
            return text
        found: Any = known.get(text)
        if found is None:
            known.add(text, text)
        return text if found is None else str(found)

    def text(self, text: str) -> str:
        """Return an equal text if there is one."""
        return self._equal(self._names.setdefault("", _Known()), text)

    @staticmethod
    def _known(of: Dict[Tuple[type, str], _Known], value: msgspec.Struct, name: str) -> _Known:
        key = (type(value), name)
        found = of.get(key)
        if found is None:
            found = of[key] = _Known()
        return found


@lru_cache(maxsize=None)
def _fields_of(kind: Type[msgspec.Struct]) -> Tuple[str, ...]:
    """Return the fields that can hold something to share."""
    return tuple(name for name in kind.__struct_fields__ if not issubclass(kind, schema.Event) or name not in _TAKEN_OUT)


def lighten(event: schema.Event) -> None:
    """Take out of an event who wrote it and when."""
    event.phase = _PHASES.get(event.phase, event.phase)
    event.ts = event.host = event.run = ""
    event.seq, event.pid = -1, 0
    event.rank = event.local_rank = event.world_size = event.span = event.seconds = None
    if not isinstance(event, _COMPARED):
        event.mono_ns = 0
