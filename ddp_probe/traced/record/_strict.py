"""Reads each line back against the schema; on in the project's own tests, where DDP_PROBE_STRICT is set."""

from functools import lru_cache
from typing import Any, Dict, Type

import msgspec

from ddp_probe.shared import schema
from ddp_probe.shared.ours import ours


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
