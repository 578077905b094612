"""How a log becomes events: its lines within bounds, its first and last ones, the time of a line, and the event that a line holds."""

import errno
import os
import re
import stat
from datetime import datetime, timezone
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple

import msgspec

from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import card_number
from ddp_probe.shared.regular_files import open_unbuffered
from ddp_probe.shared.schema import UNREADABLE

LONGEST = 1 << 20
_PIECE = 1 << 16
_AS_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)  # The probe's format.


def lines(stream: BinaryIO, longest: int = LONGEST, tail: int = 0) -> Iterator[Tuple[int, bytes, bool]]:
    """Yield line number, text, and whether the line is whole. A line longer than `longest` is cut and marked as not whole.

    With `tail`, that many of its last bytes follow after a carriage return: a failure may be printed at the end of a progress bar.
    A last line without a line break is not whole either: it is still being written, or the writer was killed.
    """
    number = 0
    while True:
        line = stream.readline(longest + 1)
        if not line:
            return
        number += 1
        whole = line.endswith(b"\n")
        if not whole and len(line) > longest:
            rest, end = line, b""
            while rest and not rest.endswith(b"\n"):
                if rest.endswith(b"\0"):
                    _pass_hole(stream)
                rest = stream.readline(_PIECE)
                if tail:
                    end = (rest if len(rest) >= tail else end + rest)[-tail:]
            line = line[:longest] + (b"\r" + end if end else b"")
        yield number, line, whole


_BINARY = bytes(set(range(32)) - set(b"\0\t\n\r\f\b\x1b"))  # A log that was cut while it was written to begins with zeros.
_PART_OF_TEXT = 0.02


def is_text(head: bytes) -> bool:
    """Tell whether the beginning of a file may be that of a log: programs, archives and pictures are full of control characters."""
    wide = any(len(part) < 2 * part.count(0) for part in (head[::2], head[1::2]))  # UTF-16, in which every other byte of a log is 0.
    head = head.replace(b"\0", b"") if wide else head.lstrip(b"\0")
    harmful = len(head) - len(head.translate(None, _BINARY)) + head.count(b"\0")
    return harmful <= len(head) * _PART_OF_TEXT


def _pass_hole(stream: BinaryIO) -> None:
    """Go on where a file has data again: a file of eight gigabytes may have been made by one write at its end, and reads as zeros before."""
    try:
        number, at = stream.fileno(), stream.tell()
        raw = os.lseek(number, 0, os.SEEK_CUR)
        try:
            after = os.lseek(number, at, os.SEEK_DATA)
        except OSError as exc:
            after = os.fstat(number).st_size if exc.errno == errno.ENXIO else at  # No data follows; or the file system does not tell.
        os.lseek(number, raw, os.SEEK_SET)  # The stream counts on it.
        stream.seek(after)
    except (OSError, ValueError):  # It is not a file.
        return


# Reads only the first and last lines of a file, to list many runs quickly.

_HEAD, _TAIL, _LONG_TAIL = 1 << 16, 1 << 13, 1 << 18
_ANY_EVENT = msgspec.json.Decoder()


def first(file: str) -> Dict[str, Any]:
    """Return the first event of a file, or an empty dict if it has none."""
    events = _events(_read(file, 0, _HEAD).split(b"\n")[:-1][:1])
    return events[0] if events else {}


def head(file: str) -> List[Dict[str, Any]]:
    """Return the first events of a file: the identity of a process, and the arguments of a launcher."""
    return _events(_read(file, 0, _HEAD).split(b"\n")[:-1][:3])


def last(file: str) -> Dict[str, Any]:
    """Return the last event of a file, or an empty dict if it has none."""
    events = tail(file, _TAIL) or tail(file)
    return events[-1] if events else {}


def tail(file: str, size: int = _LONG_TAIL) -> List[Dict[str, Any]]:
    """Return the events that end within the last bytes of a file, in order."""
    length = _size(file)
    text = _read(file, max(0, length - size), size)
    parts = text.split(b"\n")
    return _events(parts[0 if length <= size else 1 : -1])  # the text after the last line break is torn or still being written


def _events(parts: List[bytes]) -> List[Dict[str, Any]]:
    events = []
    for part in parts:
        try:
            event = _ANY_EVENT.decode(part)
        except UNREADABLE:
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            events.append(event)
    return events


def _size(file: str) -> int:
    try:
        status = os.stat(file)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _read(file: str, offset: int, size: int) -> bytes:
    if not _size(file):
        return b""
    try:
        with open_unbuffered(file) as stream:
            stream.seek(offset)
            return stream.read(size) or b""
    except OSError:
        return b""


def seconds(stamp: str) -> Optional[float]:
    """Return an RFC 3339 time as seconds since 1970."""
    if _AS_WRITTEN.fullmatch(stamp):  # strptime takes ten times as long.
        try:
            return datetime.fromisoformat(stamp[:-1]).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            return None
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            return datetime.strptime(stamp, form).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            continue
    return None


def moment(stamp: Any) -> Optional[float]:
    """Return a time as programs write it: ISO 8601, in local time if it names no zone, or seconds since 1970."""
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return float(stamp)
    if not isinstance(stamp, str):
        return None
    try:
        return seconds(stamp) or datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


# Decodes bytes to an event, and reports lines that are not events or are of an unknown version.

_KNOWN = msgspec.json.Decoder(schema.AnyEvent)
_NAMES_CARDS = (schema.Wrap, schema.WrapModel)
_ANY_OBJECT = msgspec.json.Decoder()


class Decoded(NamedTuple):
    """An event, the name of an unknown event, or the reason why the line is neither."""

    event: Optional[schema.Event] = None
    unknown: str = ""
    fault: str = ""


def decode(line: bytes) -> Decoded:
    """Decode one line."""
    try:
        event = _KNOWN.decode(line)
    except UNREADABLE:
        return _other(line)
    _number_cards(event)
    return Decoded(event)


def _number_cards(event: schema.Event) -> None:
    """Make numbers of the card names that version 0.1.0 wrote."""
    if isinstance(event, _NAMES_CARDS) and event.device_ids:
        event.device_ids = [card_number(str(card)) for card in event.device_ids]


def _other(line: bytes) -> Decoded:
    if not line.strip():
        return Decoded(fault="empty")
    try:
        decoded: Any = _ANY_OBJECT.decode(line)
    except UNREADABLE:
        return Decoded(fault="not JSON")
    if not isinstance(decoded, dict) or not isinstance(decoded.get("event"), str):
        return Decoded(fault="not an event")
    return _lenient(decoded)


def _lenient(fields: Dict[str, Any]) -> Decoded:
    """Take the fields that fit; an event of a newer version may use another type for one of them."""
    kind = schema.EVENTS.get(fields["event"])
    if kind is None:
        return Decoded(unknown=fields["event"][:200])
    fitting: Dict[str, Any] = {}
    for name in kind.__struct_fields__:
        if name not in fields:
            continue
        try:
            fitting[name] = getattr(msgspec.convert({"event": fields["event"], name: fields[name]}, kind), name)
        except (msgspec.MsgspecError, RecursionError):
            continue
    event = kind(**fitting)
    _number_cards(event)
    return Decoded(event)
