"""Writes the folder as one tar.gz: always in the same order, without owners, absolute paths or links, and never half of it under its final name."""

import contextlib
import gzip
import os
import shutil
import tarfile
from typing import IO, Sequence

from ddp_probe.shared.errors import UnusableError, UsageError

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def pack(folder: str, places: Sequence[str], target: IO[bytes]) -> None:
    """Write these files of the folder, below the folder's own name."""
    with gzip.GzipFile("", "wb", 6, target, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for place in places:
            path = os.path.join(folder, *place.split("/"))
            with open(path, "rb") as file:
                tar.addfile(_member("%s/%s" % (os.path.basename(folder), place), os.fstat(file.fileno())), file)


def _member(name: str, found: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = found.st_size, found.st_mtime, 0o600
    return member


def refuse_taken(path: str, *, force: bool) -> None:
    """Refuse a file that is there already, before any work is done."""
    if os.path.isdir(path):
        raise UsageError("%s is a folder." % path, "Name the file to write: -o FILE.tar.gz.")
    if os.path.lexists(path) and not force:
        raise _taken(path)


def _taken(path: str) -> UnusableError:
    return UnusableError(what="%s is there already." % path, why="It is not overwritten.", what_to_do="Name another file with -o, or add --force.")


def place(packed: str, path: str, *, force: bool) -> None:
    """Put the archive where it is wanted, readable by the user alone."""
    draft = "%s.%d.part" % (path, os.getpid())
    try:
        with os.fdopen(os.open(draft, _CREATE, 0o600), "wb") as target, open(packed, "rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
        _publish(draft, path, force=force)
    except FileExistsError as exc:
        raise _taken(path) from exc
    except OSError as exc:
        raise UnusableError(
            what="%s cannot be written." % path, why=exc.strerror or str(exc), what_to_do="Name a file in another folder: -o FILE."
        ) from exc
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)


def _publish(draft: str, path: str, *, force: bool) -> None:
    if force:
        os.replace(draft, path)
        return
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # A file system without hard links.
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(draft, path)
