"""Writes each file of a run into the folder that becomes the archive, masked as its kind needs it."""

import contextlib
import json
import os
import stat
import struct
import zlib
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from ddp_probe.moving.bundle import contents
from ddp_probe.reading import flight_recorder, ledger_file, whole_ledger
from ddp_probe.reading.flight_recorder import RecorderEntry
from ddp_probe.shared.masking.secrets import MASK
from ddp_probe.showing.masker import Masker

LARGEST = 1 << 26  # Bytes of one file that are masked; the middle of a larger one is left out.
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LeftOutError(Exception):
    """A file does not go into the bundle; the text says why."""


class Staged(NamedTuple):
    """One file in the folder that becomes the archive."""

    kind: str
    place: str
    size: int
    packed: int  # Bytes of it alone, compressed.
    cut: int  # Bytes that its middle has lost.


def place_of(part: contents.BundledFile, masker: Masker) -> str:
    """Return the place of a file with what looks like a credential taken out of its name."""
    return "/".join(masker.text(name, "the name of a file").replace(MASK, "masked") for name in part.place.split("/"))


def part(one: contents.BundledFile, place: str, root: str, masker: Masker) -> Staged:
    """Write one file of the run."""
    try:
        found = os.stat(one.file)
        if not stat.S_ISREG(found.st_mode):
            raise LeftOutError("It is not a regular file.")
        data, cut = _masked(one, masker)
    except OSError as exc:
        raise LeftOutError("It cannot be read: %s." % (exc.strerror or exc)) from exc
    return write(root, place, data, one.kind, found.st_mtime)._replace(cut=cut)


def write(root: str, place: str, data: bytes, kind: str, changed: float) -> Staged:
    """Write these bytes as they are; a file that is there is replaced."""
    path = os.path.join(root, *place.split("/"))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with os.fdopen(os.open(path, _WRITE, 0o600), "wb") as file:
        file.write(data)
    os.utime(path, (changed, changed))
    return Staged(kind, place, len(data), len(zlib.compress(data, 6)), 0)


def _masked(one: contents.BundledFile, masker: Masker) -> Tuple[bytes, int]:
    if one.kind == contents.LEDGER:
        return _ledger(one.file, masker), 0
    if one.kind == contents.RECORDER:
        return _recording(one.file, masker), 0
    data, cut = _read(one.file, contents.BY_NAME[one.kind].cut)
    if one.kind == contents.LOG:
        return b"".join(map(masker.event, data.splitlines(keepends=True))), cut
    if one.kind == contents.MODEL:
        return _model(data, masker), cut
    return masker.lines(data, "stacks" if one.kind == contents.STACKS else "a plain log"), cut


def _read(file: str, may_be_cut: bool) -> Tuple[bytes, int]:
    """Return a file, or both ends of a large one in whole lines, and how many bytes are left out."""
    with open(file, "rb") as stream:
        data = stream.read(LARGEST + 1)
        if len(data) <= LARGEST:
            return data, 0
        if not may_be_cut:
            raise LeftOutError("It has more than %d bytes." % LARGEST)
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(size - LARGEST // 2, LARGEST // 2))
        kept = cut_to(data[: LARGEST // 2] + stream.read(LARGEST // 2), LARGEST - 1)
        return kept, size - len(kept)


def cut_to(data: bytes, most: int) -> bytes:
    """Return both ends of a text in whole lines, together at most this long."""
    if len(data) <= most:
        return data
    half = most // 2
    head, tail = data[:half], data[len(data) - half :]
    return head[: head.rfind(b"\n") + 1] + tail[tail.find(b"\n") + 1 or len(tail) :]


def _model(data: bytes, masker: Masker) -> bytes:
    """Mask the rows of a list of parameters, which stand in lines of their own."""
    shown = []
    for line in data.splitlines(keepends=True):
        body = line.rstrip(b"\n").rstrip(b",")
        shown.append((masker.event(body) if body not in (b"[", b"]", b"") else body) + line[len(body) :])
    return b"".join(shown)


# --- ledgers


def _ledger(file: str, masker: Masker) -> bytes:
    """Return a ledger as text, in which every string can be seen and masked; the numbers of records hold none."""
    data = whole_ledger.settled(file)
    if len(data) > LARGEST:
        raise LeftOutError("It has more than %d bytes." % LARGEST)
    if ledger_file.is_text(data):
        return b"".join(masker.event(line) for line in data.splitlines(keepends=True))
    if not data.strip(b"\0"):
        return data
    try:
        text = ledger_file.as_lines(data)
    except (ValueError, struct.error) as exc:
        raise LeftOutError("It cannot be read, and so cannot be masked: %s" % exc) from exc
    return "".join(_ledger_line(line, masker) for line in text.splitlines(keepends=True)).encode("ascii")


def _ledger_line(line: str, masker: Masker) -> str:
    if '"is":' not in line:
        return line
    row: Dict[str, Any] = json.loads(line)
    masked = masker.ledger_text(row["is"])
    return line if masked == row["is"] else json.dumps(dict(row, **{"is": masked}), separators=(",", ":")) + "\n"


# --- dumps of the Flight Recorder


def _recording(file: str, masker: Masker) -> bytes:
    """Return a dump as JSON with what the diagnosis reads of it: what else a pickle holds cannot be masked."""
    found = flight_recorder.read(file, 0)
    if found.problem:
        raise LeftOutError("It cannot be read, and so cannot be masked: %s." % found.problem)
    return json.dumps({"entries": list(_entries(found.entries, masker))}, separators=(",", ":")).encode("ascii")


def _entries(entries: Tuple[RecorderEntry, ...], masker: Masker) -> Iterator[Dict[str, Any]]:
    where = "a dump of the Flight Recorder"
    for entry in entries:
        yield {
            "process_group": [masker.text(entry.group, where), ""],
            "collective_seq_id": entry.seq,
            "profiling_name": masker.text("%s:%s" % (entry.backend, entry.op) if entry.backend else entry.op, where),
            "input_sizes": entry.sizes,
            "state": masker.text(entry.state, where),
            "time_created_ns": entry.created_ns,
            "frames": [
                {"filename": masker.text(site.file, where), "line": site.line, "name": masker.text(site.function, where)} for site in entry.frames
            ],
            "is_p2p": entry.is_p2p,
        }
