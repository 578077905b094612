"""Decodes bytes to an event, and reports lines that are not events or are of an unknown version."""

from typing import Any, Dict, NamedTuple, Optional

import msgspec

from ddp_probe.shared import schema

_KNOWN = msgspec.json.Decoder(schema.AnyEvent)
_ANY = msgspec.json.Decoder()


class Decoded(NamedTuple):
    """An event, the name of an unknown event, or the reason why the line is neither."""

    event: Optional[schema.Event] = None
    unknown: str = ""
    fault: str = ""


def decode(line: bytes) -> Decoded:
    """Decode one line."""
    try:
        return Decoded(_KNOWN.decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _other(line)


def _other(line: bytes) -> Decoded:
    if not line.strip():
        return Decoded(fault="empty")
    try:
        found: Any = _ANY.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Decoded(fault="not JSON")
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        return Decoded(fault="not an event")
    return _lenient(found)


def _lenient(found: Dict[str, Any]) -> Decoded:
    """Take the fields that fit; an event of a newer version may use another type for one of them."""
    kind = schema.EVENTS.get(found["event"])
    if kind is None:
        return Decoded(unknown=found["event"][:200])
    known: Dict[str, Any] = {}
    for name in kind.__struct_fields__:
        if name not in found:
            continue
        try:
            known[name] = getattr(msgspec.convert({"event": found["event"], name: found[name]}, kind), name)
        except (msgspec.MsgspecError, RecursionError):
            continue
    return Decoded(kind(**known))
