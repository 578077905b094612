"""The files of an installation: what they hold, how they are written, how they are known again and removed."""

import contextlib
import fcntl
import importlib.util
import os
import py_compile
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ddp_probe.activation.installer import locations

ACTIVATOR, LINE, SLOT, START = "ddp_probe_activator.py", "ddp_probe.pth", "sitecustomize.py", "ddp_probe.start"
BOTH, SITECUSTOMIZE, PTH = VIAS = ("both", "sitecustomize", "pth")
_HOME = b'HOME = ""\n'
_loaded: Dict[str, Any] = {}


def activator() -> Any:
    """Return the activator template as a module: it knows its own files, so that it can remove them without the package."""
    if "module" not in _loaded:
        spec = importlib.util.spec_from_file_location("_ddp_probe_activator_template", os.path.join(locations.templates(), ACTIVATOR))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _loaded["module"] = module
    return _loaded["module"]


def names(via: str) -> List[str]:
    """Return the files of one way, in the order they are written: what starts us comes last."""
    # From 3.15 on a .start file is read instead of the import line of its .pth twin (PEP 829).
    line = [START, LINE] if sys.version_info >= (3, 15) else [LINE]
    return [ACTIVATOR, *([SLOT] if via != PTH else []), *(line if via != SITECUSTOMIZE else [])]


def via_of(paths: List[str]) -> str:
    """Return the way that these files are; empty if nothing among them starts the probe."""
    names_there = {os.path.basename(path) for path in paths}
    if SLOT in names_there:
        return BOTH if LINE in names_there else SITECUSTOMIZE
    return PTH if LINE in names_there else ""


def content(name: str, home: str) -> bytes:
    """Return what a file has to hold. Home is the folder that the package lies in; a .pth file after ours may be what puts it on the path."""
    data = read(os.path.join(locations.templates(), name)) or b""
    data = data.replace(_HOME, b"HOME = %s\n" % ascii(home).encode()) if home and name == ACTIVATOR else data
    return bytes(activator().sealed(data))


def with_others(path: str, data: bytes) -> bytes:
    """Return what a file has to hold so that what others wrote into it, before our text and after it, stays."""
    found = parts(path)
    return found[0] + data + found[2] if found else data


def parts(path: str) -> Optional[Tuple[bytes, bytes, bytes]]:
    """Return what others wrote before our text, our text, and what they wrote after it; None if nothing there is ours."""
    found: Optional[Tuple[bytes, bytes, bytes]] = activator().parts(read_compiled(path) or b"")
    return found


def take_out(path: str) -> None:
    """Take our text out of a file."""
    activator().take_out(path)


def is_changed(path: str) -> bool:
    """Tell whether somebody has changed the text that install wrote into this file."""
    return bool(activator().is_changed(path))


def said(gone: List[str], folders: List[str], say: Callable[[str], str] = str) -> List[str]:
    """Return the lines of uninstall, in the reader's language."""
    return list(activator().said(gone, folders, say))


def read(path: str) -> Optional[bytes]:
    """Return what a file holds, or None if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """Let one process at a time change a folder; without a lock where the file system has none."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write(path: str, data: bytes) -> None:
    """Write a file whole or not at all."""
    first, last = activator().TEMPORARY
    temporary = os.path.join(os.path.dirname(path), "%s%d%s" % (first, os.getpid(), last))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)  # other users start this interpreter too, whatever the umask
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def version(path: str) -> str:
    """Return the version that a file of ours carries, or an empty string."""
    return _version(parts(path))


def current_version() -> str:
    """Return the version that install writes: a template by itself has no digest."""
    return _version(activator().parts(content(ACTIVATOR, "")))


def _version(found: Optional[Tuple[bytes, bytes, bytes]]) -> str:
    if found is None:
        return ""
    line = found[1].split(b"\n", 1)[0].decode(errors="replace")
    return line[len(activator().MARKER) :].split(":", 1)[0]


def is_ours(path: str) -> bool:
    """Tell whether there is a text in this file that install wrote, and that nobody has changed."""
    return bool(activator().is_ours(path))


def is_foreign(path: str) -> bool:
    """Tell whether somebody else wrote this file; one that another install writes or removes meanwhile is nobody's."""
    return not is_ours(path) and os.path.lexists(path) and not is_ours(path) and os.path.lexists(path)


def remove(folder: str) -> List[str]:
    """Remove what install wrote into a folder; return the files that went."""
    return list(activator().remove(folder))


def remove_caches(path: str) -> None:
    """Remove what was compiled from a Python file."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    if suffix == ".py":
        activator().remove_caches(os.path.dirname(path), stem)


def remove_temporary(folder: str) -> List[str]:
    """Remove what an interrupted install left half-written."""
    return list(activator().remove_temporary(folder))


# Compiles what install writes: an interpreter that may not write bytecode would compile it again at each start.
#
# The compiled file carries a hash of its source, not its time, and Python checks it: decision 0023.

_FOLDER = "__pycache__"
_TIMED, _CHECKED = 0, 3  # PEP 552: by the source's time and size; by its hash


def cache(path: str) -> str:
    """Return where this interpreter looks for the compiled file; PYTHONPYCACHEPREFIX holds for some starts only."""
    folder, name = os.path.split(path)
    return os.path.join(folder, _FOLDER, "%s.%s.pyc" % (os.path.splitext(name)[0], sys.implementation.cache_tag))


def sources(paths: Iterable[str]) -> List[str]:
    """Return those of the files that can be compiled."""
    return [path for path in paths if path.endswith(".py") and sys.implementation.cache_tag is not None]


def write_compiled(path: str) -> None:
    """Compile one file. If the result cannot be written, a start takes longer and still works."""
    with contextlib.suppress(OSError):
        _make_folder(os.path.join(os.path.dirname(path), _FOLDER))
        py_compile.compile(path, cache(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def is_compiled(path: str) -> bool:
    """Tell whether this interpreter would take the compiled file for this source."""
    data, source = (read_compiled(cache(path)) or b"")[:16], read_compiled(path) or b""
    if len(data) < 16 or data[:4] != importlib.util.MAGIC_NUMBER:
        return False
    flags, known = int.from_bytes(data[4:8], "little"), data[8:16]
    if flags == _CHECKED:
        return known == importlib.util.source_hash(source)
    return flags == _TIMED and known == _stamp(path)


def read_compiled(path: str) -> Optional[bytes]:
    """Return what a file holds, or None if it cannot be read."""
    try:
        return read(path)
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
