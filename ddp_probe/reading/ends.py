"""Reads only the first and last lines of a file, to list many runs quickly."""

import os
import stat
from typing import Any, Dict, List

import msgspec

_HEAD, _TAIL, _LONG_TAIL = 1 << 16, 1 << 13, 1 << 18
_ANY = msgspec.json.Decoder()


def first(file: str) -> Dict[str, Any]:
    """Return the first event of a file, or an empty dict if it has none."""
    found = _events(_read(file, 0, _HEAD).split(b"\n")[:-1][:1])
    return found[0] if found else {}


def head(file: str) -> List[Dict[str, Any]]:
    """Return the first events of a file: the identity of a process, and the arguments of a launcher."""
    return _events(_read(file, 0, _HEAD).split(b"\n")[:-1][:3])


def last(file: str) -> Dict[str, Any]:
    """Return the last event of a file, or an empty dict if it has none."""
    found = tail(file, _TAIL) or tail(file)
    return found[-1] if found else {}


def tail(file: str, size: int = _LONG_TAIL) -> List[Dict[str, Any]]:
    """Return the events that end within the last bytes of a file, in order."""
    length = _size(file)
    text = _read(file, max(0, length - size), size)
    parts = text.split(b"\n")
    return _events(parts[0 if length <= size else 1 : -1])  # the text after the last line break is torn or still being written


def _events(parts: List[bytes]) -> List[Dict[str, Any]]:
    found = []
    for part in parts:
        try:
            event = _ANY.decode(part)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            found.append(event)
    return found


def _size(file: str) -> int:
    try:
        found = os.stat(file)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _read(file: str, offset: int, size: int) -> bytes:
    if not _size(file):
        return b""
    try:
        with open(file, "rb", buffering=0) as stream:
            stream.seek(offset)
            return stream.read(size) or b""
    except OSError:
        return b""
