"""The places at which other processes stand, from their ledgers: facts in a few words. The verdict is the report's."""

import os
import struct
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from ddp_probe import ledger_schema as schema
from ddp_probe.hangs._standing import open_call, open_phase, records

_ENTRY = schema.layout(schema.TEXT)
_OPERATIONS = schema.names(schema.OPERATIONS)
_PHASES = schema.names(schema.PHASES)
_USED = struct.Struct("@Q")
_MOST = 4


class Whereabouts(NamedTuple):
    """The place at which a process stands: in a few words, and whether it waits for others there, as far as its ledger knows."""

    words: str
    waits: bool


def place(data: bytes) -> Whereabouts:
    """Return where the process of this ledger stands."""
    call, phase = open_call(data), open_phase(data)
    if call is not None:
        return Whereabouts("in %s" % _called(data, call), True)
    last = max(records(data), key=lambda row: int(row["index"]), default=None)
    if phase is not None:
        name = _PHASES.get(phase[0], "")
        return Whereabouts("in %s%s" % (name, _at(data, phase[1])), name == "backward" or _is_queued(data, last))
    if last is None:
        return Whereabouts("in no collective so far", False)
    return Whereabouts("in no collective, after %s" % _called(data, last), _is_queued(data, last))


def together(places: Iterable["tuple[int, Whereabouts]"]) -> str:
    """Return who stands where, equal ones together, the many first."""
    found: Dict[str, List[int]] = {}
    for rank, one in places:
        found.setdefault(one.words, []).append(rank)
    parts = ["%s %s %s" % (named(ranks), "is" if len(ranks) == 1 else "are", words) for words, ranks in _by_number(found)]
    more = len(parts) - _MOST
    text = "; ".join(parts[:_MOST]) + ("; and %d more places" % more if more > 0 else "")
    return text[:1].upper() + text[1:] + "." if text else ""


def named(ranks: List[int]) -> str:
    """Return ranks as a sentence names them: rank 3; ranks 0-2, 5."""
    spans: List[List[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    parts = ["%d" % low if low == high else "%d-%d" % (low, high) for low, high in spans]
    return "rank%s %s" % ("" if len(ranks) == 1 else "s", ", ".join(parts))


def _by_number(found: Dict[str, List[int]]) -> "List[tuple[str, List[int]]]":
    return sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[1]))


def _called(data: bytes, row: Dict[str, Any]) -> str:
    number = " number %d" % row["seq"] if row["op"] < schema.POINT_TO_POINT else ""
    return "%s%s%s" % (_OPERATIONS.get(row["op"], "a call"), number, _at(data, row))


def _at(data: bytes, row: Dict[str, Any]) -> str:
    """Return ` at FILE:LINE`, without the folders."""
    file, _, rest = text_of(data, row["site"]).partition("\n")
    return " at %s:%s" % (os.path.basename(file), rest.partition("\n")[0]) if file else ""


def _is_queued(data: bytes, last: Optional[Dict[str, Any]]) -> bool:
    """Tell whether the last call was given to a device: the process may wait for the device outside of any call."""
    return last is not None and text_of(data, last["device"]) not in ("", "cpu")


def text_of(data: bytes, number: int) -> str:
    """Return the text that has this number; empty if there is none."""
    at = schema.HEADER_BYTES
    (used,) = _USED.unpack_from(data, schema.offset(schema.HEADER, "text_used"))
    end = at + min(used, schema.TEXT_BYTES)
    while number and at + _ENTRY.size <= end:
        length, _, found = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if found == number:
            return data[at : min(at + length, end)].decode("utf-8", "replace")
        at += -(-length // 8) * 8
    return ""
