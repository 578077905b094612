"""The form of a file that holds a fold, and behind it files that a rule may look into, each compressed alone."""

import os
import struct
import zlib
from functools import lru_cache
from typing import Any, BinaryIO, Dict, Iterable, List, NamedTuple, Optional, Tuple

import msgspec

from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

SUFFIX = ".fold"
LARGEST = 1 << 30  # Bytes of a fold, or of one held file, uncompressed.
_MAGIC = b"ddp_probe fold 1\n"
_SIZES = struct.Struct("<QQ")  # Compressed sizes of the fold and of the list of held files.
_LEVEL = 6


class InvalidFoldError(ValueError):
    """These bytes are not a fold that this version reads."""


class FoldEntry(NamedTuple):
    """A file behind the fold."""

    name: str
    offset: int
    packed: int
    changed: float


class FoldMember(NamedTuple):
    """A file to hold: its name, what is in it, and when it was changed."""

    name: str
    data: bytes
    changed: float


_LIST = msgspec.msgpack.Decoder(List[FoldEntry])


def write(target: BinaryIO, fold: bytes, held: Iterable[FoldMember]) -> None:
    """Write a fold, and the files that it holds."""
    table: List[FoldEntry] = []
    bodies: List[bytes] = []
    offset = 0
    for member in held:
        bodies.append(zlib.compress(member.data, _LEVEL))
        table.append(FoldEntry(member.name, offset, len(bodies[-1]), member.changed))
        offset += len(bodies[-1])
    main, names = zlib.compress(fold, _LEVEL), zlib.compress(msgspec.msgpack.encode(table), _LEVEL)
    for part in (_MAGIC, _SIZES.pack(len(main), len(names)), main, names, *bodies):
        target.write(part)


def is_fold(path: str) -> bool:
    """Return whether a file begins as a fold does."""
    try:
        with open_bytes(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read(path: str) -> bytes:
    """Return the fold in a file."""
    with open_bytes(path) as file:
        main, _, _ = _sizes(file)
        return _unpacked(file.read(main), main)


def held_files(path: str) -> List[FoldEntry]:
    """Return the list of the files behind a fold, each with its place in the file; an empty list if it cannot be read."""
    try:
        with open_bytes(path) as file:
            main, names, begin = _sizes(file)
            file.seek(main, os.SEEK_CUR)
            entries = _LIST.decode(_unpacked(file.read(names), names))
    except (OSError, InvalidFoldError, *UNREADABLE):
        return []
    return [entry._replace(offset=begin + entry.offset) for entry in entries]


def held_data(path: str, entry: FoldEntry) -> Optional[bytes]:
    """Return what is in a file behind a fold; None if that is not whole."""
    try:
        with open_bytes(path) as file:
            file.seek(entry.offset)
            return _unpacked(file.read(min(entry.packed, LARGEST)), entry.packed)
    except (OSError, ValueError, OverflowError):
        return None


def _sizes(file: BinaryIO) -> Tuple[int, int, int]:
    """Return the sizes of the fold and of the list, and the offset of the first held file."""
    head = file.read(len(_MAGIC) + _SIZES.size)
    if not head.startswith(_MAGIC) or len(head) < len(_MAGIC) + _SIZES.size:
        raise InvalidFoldError("It does not begin as a fold does.")
    main, names = _SIZES.unpack(head[len(_MAGIC) :])
    if max(main, names) > LARGEST:
        raise InvalidFoldError(say("It says that it is larger than {most} bytes.", most=LARGEST))
    return main, names, len(head) + main + names


def _unpacked(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise InvalidFoldError("The file ends too early.")
    machine = zlib.decompressobj()
    try:
        unpacked = machine.decompress(data, LARGEST)
    except zlib.error as exc:
        raise InvalidFoldError(say("It cannot be decompressed: {reason}.", reason=quoted(exc))) from exc
    if machine.unconsumed_tail or not machine.eof:
        raise InvalidFoldError(say("It is larger than {most} bytes, or not whole.", most=LARGEST))
    return unpacked


# Puts a file that a fold holds on this disk when it is needed. Every other path stands for itself.

_INSIDE = SUFFIX + "/"
_LISTS = 64  # At most this many lists of held files are remembered: rules look at a few ranks.


def real_place(path: str) -> str:
    """Return where a file can be read."""
    folder, inside, name = path.rpartition(_INSIDE)
    if not inside or os.path.lexists(path):
        return path
    return _place(folder + SUFFIX, name) or path


def held_bytes(path: str) -> Optional[bytes]:
    """Return the bytes of a file that a fold holds, without a place on this disk; None for every other path."""
    folder, inside, name = path.rpartition(_INSIDE)
    entry = _files(folder + SUFFIX).get(name) if inside and not os.path.lexists(path) else None
    return held_data(folder + SUFFIX, entry) if entry is not None else None


def held_names(folder: str) -> Optional[List[str]]:
    """Return the names of the files that a fold holds; None if this is not a fold."""
    return list(_files(folder)) if folder.endswith(SUFFIX) and os.path.isfile(folder) else None


@lru_cache(maxsize=_LISTS)
def _files(fold: str) -> Dict[str, FoldEntry]:
    return {entry.name: entry for entry in held_files(fold)}


@lru_cache(maxsize=1)
def _folder() -> Any:
    import tempfile

    return tempfile.TemporaryDirectory(prefix="ddp_probe-fold-")


@lru_cache(maxsize=None)
def _place(fold: str, name: str) -> str:
    """Write a held file to a folder of this process, under a new name; an empty string if the fold does not hold it."""
    entry = _files(fold).get(name)
    data = held_data(fold, entry) if entry is not None else None
    if entry is None or data is None:
        return ""
    import tempfile

    folder: str = _folder().name
    number, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    os.utime(path, (entry.changed, entry.changed))
    return path
