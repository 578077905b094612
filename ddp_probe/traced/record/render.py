"""Turns an event into JSON whatever was put into it; a value that JSON does not know is described. Our tests read each line back."""

from functools import lru_cache
from typing import Any, Callable, Dict, List, Type

import msgspec

from ddp_probe.shared import schema
from ddp_probe.shared.masks import mask
from ddp_probe.shared.ours import ours

_DEPTH = 8  # an event nests three deep; what goes further is a value that nobody meant to write
_WIDEST = 1 << 63
_REMEMBERED, _LONGEST = 4096, 500  # texts that are masked once for all their lines, and their characters
_masked: Dict[str, str] = {}
_name: Callable[[type], str] = type.__dict__["__name__"].__get__  # past what a metaclass may make of it
_PLAIN = frozenset((int, float, bool, type(None)))


def describe(value: Any) -> Any:
    """Return a plain stand-in for a value that msgspec does not know; no method of the value's own class is called."""
    kind = type(value)  # isinstance would ask the value for its __class__, and a lazy proxy would wake up
    if issubclass(kind, str):  # torch.__version__ is a subclass of str
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):  # numpy.float64 is one
        return float.__float__(value)
    return "<%s>" % _name(kind)


def fields(event: msgspec.Struct) -> Dict[str, Any]:
    """Return the fields that are set, the event's name first; nothing in it is shared with the event."""
    try:
        values: Dict[str, Any] = msgspec.to_builtins(event, enc_hook=describe)
    except ours(Exception):  # a key that is not text, a nesting without end: the slow way takes anything
        values = _plain(event, 0)
    return values


def render(line: Any) -> bytes:
    """Return one line of JSON without its end, masked."""
    try:
        return _ENCODER.encode(_through(line))
    except ours(Exception):  # text with surrogates, as in a file name that is not UTF-8
        return _ENCODER.encode(_through(_plain(line, 0)))


def through(text: str) -> str:
    """Return a text as it may leave the process; what is not masked is not changed."""
    safe = _masked.get(text)
    if safe is None:
        safe = mask(text)
        if len(text) <= _LONGEST:
            if len(_masked) >= _REMEMBERED:
                _masked.clear()
            _masked[text] = safe
    return safe


def rows(table: List[Any]) -> bytes:
    """Return rows of JSON, one a line.

    A model has thousands of names: one look at all of them tells that none needs a mask.
    """
    texts: List[str] = []
    for row in table:
        texts.extend(item for item in row if type(item) is str)
    names = "\n".join(texts)
    encode = _ENCODER.encode if mask(names) == names else render
    try:
        lines = [encode(row) for row in table]
    except ours(UnicodeEncodeError):  # names with surrogates
        lines = [render(row) for row in table]
    return b"[\n" + b",\n".join(lines) + b"\n]\n"


def _through(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return through(value)
    if kind is dict:
        return _through_items(value)
    if kind is list or kind is tuple:
        return [_through(item) for item in value]
    return value if kind in _PLAIN else _through(msgspec.to_builtins(value, enc_hook=describe))


def _through_items(value: Dict[Any, Any]) -> Dict[Any, Any]:
    """Return a dict masked, names too. It is half of what a line costs: a known text takes one look-up and no call."""
    masked_before, safe = _masked.get, {}
    for name, item in value.items():
        kind = type(item)
        if kind is str:
            if name != "ts":  # The clock's text is new in each line, and ours.
                item = masked_before(item) or through(item)  # noqa: PLW2901  # A name of its own costs as much as the rest.
        elif kind not in _PLAIN:
            item = _through(item)  # noqa: PLW2901
        safe[(masked_before(name) or through(name)) if type(name) is str else name] = item
    return safe


_ENCODER = msgspec.json.Encoder(enc_hook=describe)


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if depth > _DEPTH:
        return "<%s>" % _name(kind)
    if issubclass(kind, str):
        return str.__str__(value).encode("utf-8", "backslashreplace").decode("utf-8")
    if kind is int and not -_WIDEST <= value < _WIDEST:
        return "<int of %d bits>" % value.bit_length()
    if issubclass(kind, msgspec.Struct):
        return _plain_struct(value, depth)
    if kind is dict:
        return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if kind in (list, tuple, set, frozenset):
        return [_plain(item, depth + 1) for item in value]
    return value if value is None or kind in (bool, int, float) else describe(value)


def _plain_struct(value: msgspec.Struct, depth: int) -> Dict[str, Any]:
    config = value.__struct_config__
    values: Dict[str, Any] = {} if config.tag_field is None else {config.tag_field: config.tag}
    blank = type(value)()  # every field of an event has a default
    for name in value.__struct_fields__:
        item, default = getattr(value, name), getattr(blank, name)
        if type(item) is not type(default) or item != default:  # the types first: a tensor's comparison would run on its device
            values[name] = _plain(item, depth + 1)
    return values


def _key(key: Any) -> str:
    return str(_plain(key, _DEPTH)) if issubclass(type(key), (str, int, float)) else "<%s>" % _name(type(key))


# Reads each line back against the schema; on in the project's own tests, where DDP_PROBE_STRICT is set.


class SchemaDriftError(Exception):
    """A line says something that the schema does not know."""


@lru_cache(maxsize=1)
def decoders() -> Dict[str, Any]:
    """Return a decoder per event.

    Made ahead of the first line: msgspec (0.18.0 and 0.22.0 seen) crashes where a signal handler decodes while it works out a type.
    """
    return {name: msgspec.json.Decoder(kind) for name, kind in schema.EVENTS.items()}


def check(line: bytes) -> None:
    """Raise SchemaDriftError unless the line decodes as one of the known events and has no other keys."""
    raw = msgspec.json.decode(line)
    decoder = decoders().get(raw.get("event"))
    if decoder is None:
        raise SchemaDriftError("No event has this name: %s" % raw.get("event"))
    try:
        event = decoder.decode(line)
    except ours(msgspec.ValidationError) as exc:
        raise SchemaDriftError("%s: %s" % (raw["event"], exc)) from exc
    _compare(raw, event, raw["event"])


def _compare(raw: Any, value: Any, where: str) -> None:
    if isinstance(value, msgspec.Struct):
        _compare_keys(raw, type(value), where)
        for name in raw:
            _compare(raw[name], getattr(value, name, None), "%s.%s" % (where, name))
    elif isinstance(value, dict):
        for name in raw:
            _compare(raw[name], value.get(name), "%s[%s]" % (where, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _compare(raw[number], item, "%s[%d]" % (where, number))


def _compare_keys(raw: Any, kind: Type[msgspec.Struct], where: str) -> None:
    strange = sorted(set(raw) - set(kind.__struct_fields__) - {kind.__struct_config__.tag_field})
    if strange:
        raise SchemaDriftError("%s: the schema has no field %s" % (where, ", ".join(strange)))
