"""The places at which other processes stand, from their ledgers and the stacks in their logs: facts in a few words. The verdict is the report's."""

import json
import os
import signal
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.alignment import AlignedCall, departure
from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, task, waits_for_buffers, waits_for_its_processes
from ddp_probe.traced.hangs.place_in_ledger import open_call, open_phase, records

_OPERATIONS = schema.names(schema.OPERATIONS)
_PHASES = schema.names(schema.PHASES)
_MOST = 4
_NO_CALL = "in no collective"
_LONG = ("validate", "test", "checkpoint", "save", "load")
_COMPARED = 512  # Calls of a rank, the latest.
_COMPARABLE = (0, schema.ASYNC)
_SUSPECTED, _OVER = b'"event":"hang.suspected"', b'"event":"hang.over"'
_LOOKED_AT = 1 << 18


class Whereabouts(NamedTuple):
    """The place of a process in words, whether it waits for others there, as far as its ledger knows, and how long its stack stands still."""

    words: str
    waits: bool
    still: float = 0.0
    task: str = ""  # What it is busy with that may take long and end, by its stack.


class Stood(NamedTuple):
    """What a process has written last of where its main thread stands."""

    moved: int  # When anything in it has moved last, in nanoseconds of its monotonic clock.
    still: float  # For how many seconds the stack has stood; 0 while processes compute for it.
    where: str
    task: str = ""
    waits: bool = False  # For other ranks, although no call says so.


def stood(log: str) -> Optional[Stood]:
    """Return what the log of a process says of where it stands; None if it has moved on since, or has said nothing."""
    data = _end(log)
    first = data.find(_SUSPECTED, max(0, data.rfind(_OVER)))
    if first < 0:
        return None
    try:
        began, event = _line(data, first), _line(data, data.rfind(_SUSPECTED))
        frames = [(str(frame["file"]), int(frame["line"]), str(frame["function"])) for frame in event["threads"][0]["frames"]]
        since = int(began["mono_ns"] - began["since"] * 1e9)
        named = [(file, function) for file, _, function in frames]
        still, doing = float(event.get("still") or 0), task(named)
        if waits_for_its_processes(named, still, float(event.get("children") or 0)):
            still, doing = 0.0, doing or "processes"
        return Stood(since, still, _standing_at(frames), doing, waits_for_buffers(named))
    except ours(ValueError, TypeError, KeyError, IndexError):
        return None


def _line(data: bytes, at: int) -> Any:
    """Return the event of the line that holds this place."""
    return json.loads(data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)])


def _standing_at(frames: List[Tuple[str, int, str]]) -> str:
    """Return the innermost line of the job's code, and the one below it that it waits in."""
    own = [frame for frame in frames if not foreign(frame[0])] or frames
    inner = " (%s:%d in %s)" % _short(frames[-1]) if frames[-1] is not own[-1] else ""
    return "at %s:%d in %s" % _short(own[-1]) + inner


def _short(frame: Tuple[str, int, str]) -> Tuple[str, int, str]:
    return os.path.basename(frame[0]), frame[1], frame[2]


def _end(log: str) -> bytes:
    try:
        with open(log, "rb", buffering=0) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOOKED_AT))
            return file.read(_LOOKED_AT)
    except ours(OSError):
        return b""


def place(data: bytes, stack: Optional[Stood] = None) -> Whereabouts:
    """Return where the process of this ledger stands; if it is in no call, at the line of its stack. Without a ledger the stack tells."""
    whereabouts = _place(data, stack)
    if stack is None or whereabouts.waits:
        return whereabouts
    return whereabouts._replace(task=whereabouts.task or stack.task)


def _place(data: bytes, stack: Optional[Stood]) -> Whereabouts:
    still = stack.still if stack is not None else 0.0
    if not data:
        return Whereabouts(stack.where if stack is not None else "in no process group so far", False, still)
    call, phase = open_call(data), open_phase(data)
    if call is not None:
        return Whereabouts("in %s" % _called(data, call), True, still)
    last = max(records(data), key=lambda row: int(row["index"]), default=None)
    if phase is not None:
        name = _PHASES.get(phase[0], "")
        at = " " + stack.where if stack is not None else _at(data, phase[1])
        waits = name == "backward" or _is_queued(data, last) or (stack is not None and stack.waits)
        return Whereabouts("in %s%s" % (name, at), waits, still, name if name in _LONG else "")
    if last is None:
        return Whereabouts(stack.where if stack is not None else "in no collective so far", False, still)
    if stack is not None and last["op"] >= schema.ABOUT_GROUPS:
        return Whereabouts(stack.where, False, still)
    words = stack.where if stack is not None else _NO_CALL
    return Whereabouts("%s, after %s" % (words, _called(data, last)), _is_queued(data, last), still)


def in_native_code(place: Whereabouts) -> Whereabouts:
    """Return the place of a process in which native code holds the GIL: it does not wait in a call that its ledger knows."""
    words = place.words[len(_NO_CALL) + 2 :] if place.words.startswith(_NO_CALL + ", ") else place.words
    return place._replace(words="in native code that holds the GIL, %s" % words) if not place.waits else place


def together(places: Iterable["tuple[int, Whereabouts]"]) -> str:
    """Return who stands where, equal ones together, the many first."""
    by_words: Dict[str, List[int]] = {}
    for rank, place in places:
        by_words.setdefault(place.words, []).append(rank)
    parts: List[str] = []
    for words, ranks in _by_number(by_words):
        parts.append("%s %s %s" % (named(ranks), "is" if len(ranks) == 1 else "are", words))
    more = len(parts) - _MOST
    text = "; ".join(parts[:_MOST]) + ("; and %d more places" % more if more > 0 else "")
    return text[:1].upper() + text[1:] + "." if text else ""


def parted(ledgers: Iterable["tuple[int, bytes]"]) -> str:
    """Say which rank has left the sequence of calls that all make; nothing if none has, or if it is unknown."""
    calls = {rank: list(_calls(data)) for rank, data in ledgers}
    left = departure({rank: sequence for rank, sequence in calls.items() if sequence})
    if left is None:
        return ""
    others = "%s called" % named(list(left.others)) if left.others else "it had always called"
    return "Rank %d called %s when %s %s. " % (left.rank, _words(left.made), others, _words(left.usual))


def _words(call: AlignedCall) -> str:
    return "%s at %s:%d" % (call.op, os.path.basename(call.file), call.line)


def _calls(data: bytes) -> Iterator[AlignedCall]:
    """Yield the last calls of the job's main thread, as they are compared: not those of a signal's handler."""
    texts: Dict[int, str] = {}
    rows = sorted((row for row in records(data) if row["flags"] in _COMPARABLE), key=lambda row: int(row["index"]))
    for row in rows[-_COMPARED:]:
        for number in (row["site"], row["group"]):
            if number not in texts:
                texts[number] = text_of(data, number)
        file, line, _ = [*texts[row["site"]].split("\n"), "", ""][:3]
        group = json.loads(texts[row["group"]] or "{}") if row["op"] < schema.ABOUT_GROUPS else {}
        peer = row["peer"] if schema.POINT_TO_POINT <= row["op"] < schema.ABOUT_GROUPS else -1
        members = _members(group.get("ranks", ""))
        yield AlignedCall(_OPERATIONS.get(row["op"], ""), file, int(line or 0), group.get("id", ""), members, row["seq"], peer)


def _members(text: str) -> Tuple[int, ...]:
    try:
        return tuple(schema.ranks_of(text)) if text else ()
    except ours(ValueError):  # It was cut.
        return ()


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


def _by_number(ranks_by_words: Dict[str, List[int]]) -> "List[tuple[str, List[int]]]":
    return sorted(ranks_by_words.items(), key=lambda pair: (-len(pair[1]), pair[1]))


def _called(data: bytes, row: Dict[str, Any]) -> str:
    number = " number %d" % row["seq"] if row["op"] < schema.POINT_TO_POINT else ""
    return "%s%s%s%s" % (_OPERATIONS.get(row["op"], "a call"), number, _at(data, row), _handling(row["flags"] >> schema.SIGNAL_BITS))


def _handling(number: int) -> str:
    try:
        return ", in its handler of %s" % signal.Signals(number).name if number else ""
    except ours(ValueError):
        return ", in its handler of signal %d" % number


def _at(data: bytes, row: Dict[str, Any]) -> str:
    """Return ` at FILE:LINE`, without the folders."""
    file, _, rest = text_of(data, row["site"]).partition("\n")
    return " at %s:%s" % (os.path.basename(file), rest.partition("\n")[0]) if file else ""


def _is_queued(data: bytes, last: Optional[Dict[str, Any]]) -> bool:
    """Tell whether the last call was given to a device: the process may wait for the device outside of any call."""
    return last is not None and text_of(data, last["device"]) not in ("", "cpu")


def text_of(data: bytes, number: int) -> str:
    """Return the text that has this number; empty if there is none."""
    begin, used = schema.HEADER_BYTES, codec.HEADER.read_field(data, 0, "text_used")
    for known, _, text in codec.texts(data, begin, begin + min(used, schema.TEXT_BYTES)):
        if known == number:
            return text.decode("utf-8", "replace")
    return ""
