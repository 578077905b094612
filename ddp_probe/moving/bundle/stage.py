"""The folder that becomes the archive: each file of a run written as its kind needs it, masked; bounded in size; and packed."""

import contextlib
import gzip
import json
import os
import shutil
import stat
import struct
import tarfile
import zlib
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ddp_probe.moving.bundle import contents
from ddp_probe.reading import bundled, flight_recorder, ledger_file, whole_ledger
from ddp_probe.reading.flight_recorder import RecorderEntry
from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.shared.masks import MASK
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.whole_file import whole_file
from ddp_probe.showing.masker import Masker
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.unwritable import UnwritableError
from ddp_probe.wording.words import quoted

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
    """Return the place of a file, without anything in its name that looks like a credential."""
    return "/".join(masker.text(name, "the name of a file").replace(MASK, "masked") for name in part.place.split("/"))


def part(member: contents.BundledFile, place: str, root: str, masker: Masker) -> Staged:
    """Write one file of the run."""
    try:
        status = os.stat(member.file)
        if not stat.S_ISREG(status.st_mode):
            raise LeftOutError("It is not a regular file.")
        data, cut = _masked(member, masker)
    except OSError as exc:
        raise LeftOutError(say("It cannot be read: {reason}.", reason=quoted(exc.strerror or exc))) from exc
    return write(root, place, data, member.kind, status.st_mtime)._replace(cut=cut)


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


def _masked(member: contents.BundledFile, masker: Masker) -> Tuple[bytes, int]:
    if member.kind == contents.LEDGER:
        return _ledger(member.file, masker), 0
    if member.kind == contents.RECORDER:
        return _recording(member.file, masker), 0
    data, cut = _read(member.file, contents.BY_NAME[member.kind].cut)
    if member.kind == contents.LOG:
        return b"".join(map(masker.event, data.splitlines(keepends=True))), cut
    if member.kind == contents.MODEL:
        return _model(data, masker), cut
    return masker.lines(data, "stacks" if member.kind == contents.STACKS else "a plain log"), cut


def _read(file: str, may_be_cut: bool) -> Tuple[bytes, int]:
    """Return a file, or both ends of a large one in whole lines, and how many bytes are left out."""
    with open_bytes(file) as stream:
        data = stream.read(LARGEST + 1)
        if len(data) <= LARGEST:
            return data, 0
        if not may_be_cut:
            raise LeftOutError(say("It has more than {largest} bytes.", largest=LARGEST))
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
    """Mask the rows of a list of parameters, one on each line."""
    shown = []
    for line in data.splitlines(keepends=True):
        body = line.rstrip(b"\n").rstrip(b",")
        shown.append((masker.event(body) if body not in (b"[", b"]", b"") else body) + line[len(body) :])
    return b"".join(shown)


def _ledger(file: str, masker: Masker) -> bytes:
    """Return a ledger as text, in which every string can be seen and masked; the numbers of records hold none."""
    data = whole_ledger.settled(file)
    if len(data) > LARGEST:
        raise LeftOutError(say("It has more than {largest} bytes.", largest=LARGEST))
    if ledger_file.is_text(data):
        return b"".join(masker.event(line) for line in data.splitlines(keepends=True))
    if not data.strip(b"\0"):
        return data
    try:
        text = ledger_file.as_lines(data)
    except (ValueError, struct.error) as exc:
        raise LeftOutError(say("It cannot be read, and so cannot be masked: {reason}", reason=quoted(exc))) from exc
    return "".join(_ledger_line(line, masker) for line in text.splitlines(keepends=True)).encode("ascii")


def _ledger_line(line: str, masker: Masker) -> str:
    if '"is":' not in line:
        return line
    row: Dict[str, Any] = json.loads(line)
    masked = masker.ledger_text(row["is"])
    return line if masked == row["is"] else json.dumps(dict(row, **{"is": masked}), separators=(",", ":")) + "\n"


def _recording(file: str, masker: Masker) -> bytes:
    """Return a dump as JSON with what the diagnosis reads of it: what else a pickle holds cannot be masked."""
    recording = flight_recorder.read(file, 0)
    if recording.problem:
        raise LeftOutError(say("It cannot be read, and so cannot be masked: {reason}.", reason=recording.problem))
    return json.dumps({"entries": list(_entries(recording.entries, masker))}, separators=(",", ":")).encode("ascii")


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


# Keeps a bundle below its size: files are cut in their middle or left out, the largest first, and each time it is said.

_HEADER = 160  # Compressed bytes of what an archive adds to a file, about.
_PLAIN_HEADER = 2560  # The same without compression: two headers, and the filling of the last block.
_FEWEST = 1024  # Bytes to which a file may be cut; below that it is left out.
_SPARED = (contents.OWN, contents.SOURCE, contents.LOG, contents.TEXT)  # Left out last.
_ANOTHER_FOLDER = "Name a file in another folder: -o FILE."
UNPACKED = bundled.MOST_BYTES * 9 // 10


class Fitted(NamedTuple):
    """The files that stay, and why others do not."""

    files: List[Staged]
    left_out: Dict[str, str]


def fit(root: str, files: Sequence[Staged], most: int) -> Fitted:
    """Cut and remove files until all of them together take at most this many bytes, compressed; and few enough without compression."""
    fitted = Fitted(list(files), {})
    for limit, packed in ((most, True), (UNPACKED, False)):
        if sum(_cost(staged, packed) for staged in fitted.files) > limit:
            fitted = _fit(root, fitted, limit, packed)
    return fitted


def _cost(staged: Staged, packed: bool) -> int:
    return staged.packed + _HEADER if packed else staged.size + _PLAIN_HEADER


def _fit(root: str, files: Fitted, most: int, packed: bool) -> Fitted:
    kept, left_out = _whole(root, files, most, packed)
    fixed = sum(_cost(staged, packed) for staged in kept if not _cuttable(staged))
    level = _level([_cost(staged, packed) for staged in kept if _cuttable(staged)], most - fixed)
    fitting: List[Staged] = []
    for staged in kept:
        cost = _cost(staged, packed)
        if not _cuttable(staged) or cost <= level:
            fitting.append(staged)
            continue
        size = staged.size * max(level - (cost - (staged.packed if packed else staged.size)), 0) // max(staged.packed if packed else staged.size, 1)
        if size < _FEWEST:
            left_out[staged.place] = str(_remove(root, staged, most, packed))
        else:
            fitting.append(_shortened(root, staged, size))
    return Fitted(fitting, left_out)


def _cuttable(staged: Staged) -> bool:
    return contents.BY_NAME[staged.kind].cut


def _whole(root: str, files: Fitted, most: int, packed: bool) -> Tuple[List[Staged], Dict[str, str]]:
    """Leave out files that cannot be cut until the others of them take at most half of the room."""
    kept, left_out = list(files.files), dict(files.left_out)
    total = sum(_cost(staged, packed) for staged in kept if not _cuttable(staged))
    chosen = [staged for staged in kept if not _cuttable(staged) and staged.kind not in _SPARED]
    for staged in sorted(chosen, key=lambda staged: -_cost(staged, packed)):
        if total <= most // 2:
            break
        kept.remove(staged)
        total -= _cost(staged, packed)
        left_out[staged.place] = str(_remove(root, staged, most, packed))
    return kept, left_out


def _remove(root: str, staged: Staged, most: int, packed: bool) -> Text:
    os.unlink(os.path.join(root, *staged.place.split("/")))
    return say(
        "No room is left: the bundle has {most} bytes{unpacked} at most.",
        most=most,
        unpacked="" if packed else say(", unpacked,"),
    )


def _level(costs: List[int], room: int) -> int:
    """Return the cost that no file may exceed, so that all of them find room."""
    left = max(room, 0)
    for number, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - number)
        if cost > share:
            return share
        left -= cost
    return max(costs, default=0)


def _shortened(root: str, staged: Staged, size: int) -> Staged:
    path = os.path.join(root, *staged.place.split("/"))
    changed = os.stat(path).st_mtime
    with open_bytes(path) as file:
        data = file.read()
    kept = cut_to(data, size)
    return write(root, staged.place, kept, staged.kind, changed)._replace(cut=staged.cut + len(data) - len(kept))


# Writes the folder as one tar.gz: always in the same order, without owners, absolute paths or links, and never half of it under its final name.


def pack(folder: str, places: Sequence[str], target: IO[bytes]) -> None:
    """Write these files of the folder, below the folder's name."""
    with gzip.GzipFile("", "wb", 6, target, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for place in places:
            path = os.path.join(folder, *place.split("/"))
            with open_bytes(path) as file:
                tar.addfile(_member("%s/%s" % (os.path.basename(folder), place), os.fstat(file.fileno())), file)


def _member(name: str, status: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = status.st_size, status.st_mtime, 0o600
    return member


def refuse_taken(path: str, *, force: bool) -> None:
    """Refuse a file that is there already, before any work is done."""
    if os.path.isdir(path):
        raise UsageError(say("{path} is a folder.", path=path), "Name the file to write: -o FILE.tar.gz.")
    if os.path.lexists(path) and not force:
        raise _taken(path)
    draft = "%s.%d.part" % (path, os.getpid())
    try:
        os.close(os.open(draft, _WRITE, 0o600))
        os.unlink(draft)
    except OSError as exc:
        raise UnwritableError(path, exc, _ANOTHER_FOLDER) from exc


def _taken(path: str) -> UnusableError:
    return UnusableError(
        what=say("{path} is there already.", path=path),
        why="It is not overwritten.",
        what_to_do="Name another file with -o, or add --force.",
    )


def place(packed: str, path: str, *, force: bool) -> None:
    """Put the archive where it is wanted, readable by the user alone."""
    try:
        with whole_file(path, 0o600, replace=force) as target, open_bytes(packed) as source:
            shutil.copyfileobj(source, target, 1 << 20)
    except FileExistsError as exc:
        raise _taken(path) from exc
    except OSError as exc:
        raise UnwritableError(path, exc, _ANOTHER_FOLDER) from exc
