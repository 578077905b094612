"""Gives the files that a fold holds a place on this disk, when one is asked for. Every other path is its own place."""

import os
import tempfile
from functools import lru_cache
from typing import Dict, List, Optional

from ddp_probe.reading import fold_file
from ddp_probe.reading.fold_file import SUFFIX, FoldEntry

_INSIDE = SUFFIX + "/"
_LISTS = 64  # At most this many lists of held files are remembered: rules look at a few ranks.


def place(path: str) -> str:
    """Return where a file can be read."""
    folder, inside, name = path.rpartition(_INSIDE)
    if not inside or os.path.lexists(path):
        return path
    return _place(folder + SUFFIX, name) or path


def data(path: str) -> Optional[bytes]:
    """Return the bytes of a file that a fold holds, without a place on this disk; None for every other path."""
    folder, inside, name = path.rpartition(_INSIDE)
    one = _files(folder + SUFFIX).get(name) if inside and not os.path.lexists(path) else None
    return fold_file.held_data(folder + SUFFIX, one) if one is not None else None


def names(folder: str) -> Optional[List[str]]:
    """Return the names of the files that a fold holds; None if this is not one."""
    return list(_files(folder)) if folder.endswith(SUFFIX) and os.path.isfile(folder) else None


@lru_cache(maxsize=_LISTS)
def _files(fold: str) -> Dict[str, FoldEntry]:
    return {one.name: one for one in fold_file.held_files(fold)}


@lru_cache(maxsize=1)
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="ddp_probe-fold-")


@lru_cache(maxsize=None)
def _place(fold: str, name: str) -> str:
    """Write a held file to a folder of this process, under a name of our own; an empty string if the fold does not hold it."""
    one = _files(fold).get(name)
    data = fold_file.held_data(fold, one) if one is not None else None
    if one is None or data is None:
        return ""
    number, path = tempfile.mkstemp(dir=_folder().name)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    os.utime(path, (one.changed, one.changed))
    return path
