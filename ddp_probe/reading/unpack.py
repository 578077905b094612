"""Unpacks a bundle into a folder of its own. It is somebody else's file: it can neither write elsewhere nor fill the disk or the memory."""

import contextlib
import gzip
import os
import stat
import tarfile
import tempfile
import zlib
from typing import IO, Iterator, List, Union

from ddp_probe.shared.errors import UnusableError

MOST_BYTES = 1 << 28  # Of a bundle without its compression; bundle writes fewer.
MOST_FILES = 100_000
_LONGEST = 400  # Characters of a name.
_PIECE = 1 << 16
_BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, ValueError, OverflowError, RecursionError, MemoryError)


class _HostileError(Exception):
    """The archive holds what no bundle holds."""


@contextlib.contextmanager
def unpacked(path: str) -> Iterator[str]:
    """Unpack a bundle, and remove the folder in the end."""
    with tempfile.TemporaryDirectory(prefix="ddp_probe-bundle-") as folder:
        try:
            _unpack(path, folder)
        except _HostileError as exc:
            raise not_a_bundle(path, str(exc)) from exc
        except _BROKEN as exc:
            raise _broken(path, exc) from exc
        yield folder


def not_a_bundle(path: str, why: str) -> UnusableError:
    """Return the error for a file that is not a bundle."""
    return UnusableError(
        what="%s is not a bundle of ddp_probe." % path,
        why=why,
        what_to_do="'python -m ddp_probe bundle RUN' writes one. Unpack a compressed log before you name it.",
    )


def _broken(path: str, exc: BaseException) -> UnusableError:
    cut = isinstance(exc, EOFError) or "end of data" in str(exc) or "end-of-stream" in str(exc)
    if cut:
        return UnusableError(what="%s is not complete." % path, why="The file ends inside the archive.", what_to_do="Copy or download it again.")
    if isinstance(exc, OSError) and exc.errno:
        return UnusableError(what="%s cannot be unpacked." % path, why=exc.strerror or str(exc), what_to_do="TMPDIR names the folder for it.")
    return not_a_bundle(path, "It is not a readable tar archive: %s." % (str(exc)[:200] or type(exc).__name__))


def _unpack(path: str, folder: str) -> None:
    with tempfile.TemporaryFile(dir=folder) as plain:
        with gzip.open(path, "rb") as packed:
            _copy(packed, plain, MOST_BYTES, "it")
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:") as tar:
            _members(tar, folder)


def _members(tar: tarfile.TarFile, folder: str) -> None:
    left, count = MOST_BYTES, 0
    for member in tar:
        count += 1
        if count > MOST_FILES:
            raise _HostileError("It holds more than %d files." % MOST_FILES)
        if member.isdir():
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
            raise _HostileError("It holds %r, which is not a plain file." % member.name[:200])
        target = os.path.join(folder, *_parts(member.name))
        source = tar.extractfile(member)
        assert source is not None  # Of a plain file there always is one.
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(target, "xb", opener=_private) as file:
            left -= _copy(source, file, left, member.name[:200])
            if file.tell() < member.size:
                raise EOFError
        os.utime(target, (member.mtime, member.mtime))


def _parts(name: str) -> List[str]:
    """Return the folders and the name of a member; anything that could lead out of the folder is refused."""
    parts = name.split("/")
    if not name or len(name) > _LONGEST or any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise _HostileError("It holds a file named %r, which could lead out of its folder." % name[:200])
    return parts


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _copy(source: Union[IO[bytes], gzip.GzipFile], target: IO[bytes], most: int, name: str) -> int:
    """Copy at most this many bytes; return how many there were."""
    copied = 0
    while True:
        piece = source.read(_PIECE)
        if not piece:
            return copied
        copied += len(piece)
        if copied > most:
            raise _HostileError("Unpacked, %s has more than %d bytes." % (name, MOST_BYTES))
        target.write(piece)


def looks_packed(path: str) -> bool:
    """Return whether a file may be a bundle, by its name or its first bytes."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(3) == b"\x1f\x8b\x08" or path.endswith((".tar.gz", ".tgz"))
    except OSError:
        return False
