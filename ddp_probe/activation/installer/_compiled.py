"""Compiles what install writes: an interpreter that may not write bytecode would compile it again at each start.

The compiled file carries a hash of its source, not its time, and Python checks it: docs/decisions/0023.
"""

import contextlib
import importlib.util
import os
import py_compile
import sys
from typing import Iterable, List, Optional

from ddp_probe.activation.installer import _files

_FOLDER = "__pycache__"
_TIMED, _CHECKED = 0, 3  # PEP 552: by the source's time and size; by its hash


def cache(path: str) -> str:
    """Return where this interpreter looks for the compiled file; PYTHONPYCACHEPREFIX holds for some starts only."""
    folder, name = os.path.split(path)
    return os.path.join(folder, _FOLDER, "%s.%s.pyc" % (os.path.splitext(name)[0], sys.implementation.cache_tag))


def sources(paths: Iterable[str]) -> List[str]:
    """Return those of the files that can be compiled."""
    return [path for path in paths if path.endswith(".py") and sys.implementation.cache_tag is not None]


def write(path: str) -> None:
    """Compile one file. If the result cannot be written, a start takes longer and still works."""
    with contextlib.suppress(OSError):
        _make_folder(os.path.join(os.path.dirname(path), _FOLDER))
        py_compile.compile(path, cache(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def is_compiled(path: str) -> bool:
    """Tell whether this interpreter would take the compiled file for this source."""
    data, source = (read(cache(path)) or b"")[:16], read(path) or b""
    if len(data) < 16 or data[:4] != importlib.util.MAGIC_NUMBER:
        return False
    flags, known = int.from_bytes(data[4:8], "little"), data[8:16]
    if flags == _CHECKED:
        return known == importlib.util.source_hash(source)
    return flags == _TIMED and known == _stamp(path)


def read(path: str) -> Optional[bytes]:
    """Return what a file holds, or None if it cannot be read."""
    try:
        return _files.read(path)
    except OSError:
        return None


def remove_folder(folder: str) -> None:
    """Remove the folder of compiled files if nothing is in it."""
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(folder, _FOLDER))


def _make_folder(folder: str) -> None:
    if not os.path.isdir(folder):
        os.mkdir(folder)
        os.chmod(folder, 0o755)  # noqa: S103  # other users start this interpreter too, whatever the umask


def _stamp(path: str) -> bytes:
    seen = os.stat(path)
    return (int(seen.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little") + (seen.st_size & 0xFFFFFFFF).to_bytes(4, "little")
