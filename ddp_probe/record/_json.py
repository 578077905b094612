"""Turns an event into JSON whatever was put into it; a value that JSON does not know is described, never shown."""

from typing import Any, Dict

import msgspec

from ddp_probe.ours import ours

_DEPTH = 8  # an event nests three deep; what goes further is a value that nobody meant to write
_WIDEST = 1 << 63


def describe(value: Any) -> Any:
    """Return a plain stand-in for a value that msgspec does not know; no method of the value's own class is called."""
    kind = type(value)  # isinstance would ask the value for its __class__, and a lazy proxy would wake up
    if issubclass(kind, str):  # torch.__version__ is a subclass of str
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):  # numpy.float64 is one
        return float.__float__(value)
    return "<%s>" % kind.__name__


def fields(event: msgspec.Struct) -> Dict[str, Any]:
    """Return the fields that are set, the event's name first; nothing in it is shared with the event."""
    try:
        found: Dict[str, Any] = msgspec.to_builtins(event, enc_hook=describe)
    except ours(Exception):  # a key that is not text, a nesting without end: the slow way takes anything
        found = _plain(event, 0)
    return found


def render(line: Dict[str, Any]) -> bytes:
    """Return one line of JSON without its end."""
    try:
        return _ENCODER.encode(line)
    except ours(Exception):  # text with surrogates, as in a file name that is not UTF-8
        return _ENCODER.encode(_plain(line, 0))


_ENCODER = msgspec.json.Encoder(enc_hook=describe)


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if depth > _DEPTH:
        return "<%s>" % kind.__name__
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
    found: Dict[str, Any] = {} if config.tag_field is None else {config.tag_field: config.tag}
    blank = type(value)()  # every field of an event has a default
    for name in value.__struct_fields__:
        item, default = getattr(value, name), getattr(blank, name)
        if type(item) is not type(default) or item != default:  # the types first: a tensor's comparison would run on its device
            found[name] = _plain(item, depth + 1)
    return found


def _key(key: Any) -> str:
    return str(_plain(key, _DEPTH)) if issubclass(type(key), (str, int, float)) else "<%s>" % type(key).__name__
