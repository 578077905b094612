"""The format in which Promtail pushes to Loki: a protobuf message, compressed by Snappy."""

import re
from typing import Any, Dict, Iterator, List, Tuple

from collector_scene import Entry


def entries(body: bytes) -> Iterator[Entry]:
    """Yield the entries of a push."""
    for stream in _all(_fields(_uncompressed(body)), 1):
        fields = list(_fields(stream))
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', _one(fields, 1).decode()))
        for entry in _all(fields, 2):
            yield _entry(labels, list(_fields(entry)))


def _entry(labels: Dict[str, str], fields: List[Tuple[int, Any]]) -> Entry:
    time = dict(_fields(_one(fields, 1)))
    pairs = [list(_fields(pair)) for pair in _all(fields, 3)]
    metadata = {_one(pair, 1).decode(): _one(pair, 2).decode() for pair in pairs}
    return Entry(labels, time[1] * 10**9 + time.get(2, 0), _one(fields, 2).decode(), metadata)


def _all(fields: Any, wanted: int) -> List[bytes]:
    return [value for number, value in fields if number == wanted]


def _one(fields: Any, wanted: int) -> bytes:
    (value,) = _all(fields, wanted)
    return value


def _fields(message: bytes) -> Iterator[Tuple[int, Any]]:
    """Yield number and value of each field; this message has only numbers and what has a length."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        value, at = _number(message, at)
        assert key & 7 in (0, 2), key
        if key & 7 == 2:
            at += value
            yield key >> 3, message[at - value : at]
        else:
            yield key >> 3, value


def _number(data: bytes, at: int) -> Tuple[int, int]:
    """Return a number of seven bits a byte, and where what follows begins."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _uncompressed(data: bytes) -> bytes:
    length, at = _number(data, 0)
    out = bytearray()
    while at < len(data):
        kind = data[at] & 3
        if kind == 0:
            size, at = _literal(data, at)
            out += data[at : at + size]
            at += size
            continue
        if kind == 1:
            size, back, at = (data[at] >> 2 & 7) + 4, data[at] >> 5 << 8 | data[at + 1], at + 2
        else:
            width = 2 if kind == 2 else 4
            size, back, at = (data[at] >> 2) + 1, int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width
        for _ in range(size):  # a copy may overlap with what it makes
            out.append(out[-back])
    assert len(out) == length
    return bytes(out)


def _literal(data: bytes, at: int) -> Tuple[int, int]:
    """Return how many bytes stand as they are, and where."""
    size = data[at] >> 2
    if size < 60:
        return size + 1, at + 1
    width = size - 59
    return int.from_bytes(data[at + 1 : at + 1 + width], "little") + 1, at + 1 + width
