"""Opens a bundle, which `bundle` has written elsewhere: its files are read as those of the run itself, on any machine.

While one is open, what only the host of the job knows is taken from the bundle: which processes ran, at which time, and the job's source.
A bundle that was unpacked by hand is a folder with bundle.json, and is read in the same way.

It is somebody else's file: unpacking it can neither write elsewhere nor fill the disk or the memory.
"""

import contextlib
import os
import re
import stat
import time
from typing import IO, Any, Dict, Iterator, List, Optional, Sequence, Tuple

import msgspec

from ddp_probe.reading import remote
from ddp_probe.shared.errors import ProbeError, UnusableError, UsageError
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

MOST_BYTES = 1 << 28  # Uncompressed size of a bundle; `bundle` writes less.
MOST_FILES = 100_000
_LONGEST = 400  # Characters of a name.
_PIECE = 1 << 16
_PLAIN = (b"0", b"\0")  # tarfile.REGTYPE and AREGTYPE.


class _HostileError(Exception):
    """The archive holds what no bundle holds."""


@contextlib.contextmanager
def unpacked(path: str) -> Iterator[str]:
    """Unpack a bundle, and remove the folder in the end."""
    import tarfile  # Few runs are archives.
    import tempfile
    import zlib

    with tempfile.TemporaryDirectory(prefix="ddp_probe-bundle-") as folder:
        try:
            _unpack(path, folder)
        except _HostileError as exc:
            raise not_a_bundle(path, exc.args[0]) from exc
        except (
            tarfile.TarError,
            EOFError,
            OSError,
            zlib.error,
            ValueError,
            OverflowError,
            RecursionError,
            MemoryError,
        ) as exc:
            raise _broken(path, exc) from exc
        yield folder


def not_a_bundle(path: str, why: str) -> UnusableError:
    """Return the error for a file that is not a bundle."""
    return UnusableError(
        what=say("{path} is not a bundle of ddp_probe.", path=path),
        why=why,
        what_to_do="'python -m ddp_probe bundle RUN' writes one. Unpack a compressed log before you name it.",
    )


def _broken(path: str, exc: BaseException) -> UnusableError:
    cut = isinstance(exc, EOFError) or "end of data" in str(exc) or "end-of-stream" in str(exc)
    if cut:
        return UnusableError(
            what=say("{path} is not complete.", path=path),
            why="The file ends inside the archive.",
            what_to_do="Copy or download it again.",
        )
    if isinstance(exc, OSError) and exc.errno:
        return UnusableError(
            what=say("{path} cannot be unpacked.", path=path),
            why=exc.strerror or str(exc),
            what_to_do="TMPDIR names the folder for it.",
        )
    reason = quoted(str(exc)[:200] or type(exc).__name__)
    return not_a_bundle(path, say("It is not a readable tar archive: {reason}.", reason=reason))


def _unpack(path: str, folder: str) -> None:
    import gzip
    import tarfile
    import tempfile

    with tempfile.TemporaryFile(dir=folder) as plain:
        with open_bytes(path) as source, gzip.GzipFile(fileobj=source) as packed:
            _copy(packed, plain, MOST_BYTES, "it")
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:") as tar:
            _members(tar, folder)


def _members(tar: Any, folder: str) -> None:
    left, count = MOST_BYTES, 0
    for member in tar:
        count += 1
        if count > MOST_FILES:
            raise _HostileError(say("It holds more than {most} files.", most=MOST_FILES))
        if member.isdir():
            continue
        if member.type not in _PLAIN or member.issparse():
            name = quoted(repr(member.name[:200]))
            raise _HostileError(say("It holds {name}, which is not a plain file.", name=name))
        target = os.path.join(folder, *_parts(member.name))
        source = tar.extractfile(member)
        assert source is not None  # A plain file always has one.
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
        given = quoted(repr(name[:200]))
        raise _HostileError(say("It holds a file named {name}, which could lead out of its folder.", name=given))
    return parts


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _copy(source: Any, target: IO[bytes], most: int, name: str) -> int:
    """Copy at most this many bytes; return how many there were."""
    copied = 0
    while True:
        piece = source.read(_PIECE)
        if not piece:
            return copied
        copied += len(piece)
        if copied > most:
            raise _HostileError(say("Unpacked, {name} has more than {most} bytes.", name=name, most=MOST_BYTES))
        target.write(piece)


def looks_packed(path: str) -> bool:
    """Return whether a file may be a bundle, by its name or its first bytes."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open_bytes(path) as file:
            return file.read(3) == b"\x1f\x8b\x08" or path.endswith((".tar.gz", ".tgz"))
    except OSError:
        return False


MANIFEST = "bundle.json"
VERSION = 1
_LARGEST = 1 << 26
_FEW = 4  # How many top-level entries of an archive are looked at: a bundle has one.


class HeldFile(msgspec.Struct):
    """One file of a bundle."""

    path: str  # Its path in the bundle.
    kind: str
    bytes: int
    bytes_left_out: int = 0  # Cut from its middle, in whole lines.


class Manifest(msgspec.Struct):
    """What a bundle holds, and what only the host of the job knows."""

    bundle: int
    ddp_probe: str = ""
    run: str = ""
    made: float = 0.0  # When the run was read, in seconds since 1970.
    paths: List[str] = []  # The folders of the run, or its files if it has no folder.
    launch: int = 0  # The launch that was bundled, if these files are of several.
    states: Dict[str, str] = {}  # Processes that ran then, as HOST/PID, to the kernel's letter of their state.
    sources: Dict[str, str] = {}  # Files of the job's source to those in the bundle.
    unreadable: Dict[str, str] = {}  # Files of the run that could not be read, and why.
    files: List[HeldFile] = []
    left_out: Dict[str, str] = {}  # Files that are not in the bundle, and why.
    masked: Dict[str, int] = {}  # Places in which values were masked for the bundle, and how many.
    already_masked: Dict[str, int] = {}  # The same for values that the probe had masked when it wrote them.


class OpenBundle:
    """A bundle that is being read."""

    def __init__(self, name: str, folder: str, manifest: Manifest, number: str = "") -> None:
        self.name = name
        self.folder = folder
        self.manifest = manifest
        inside = [os.path.join(folder, path) for path in manifest.paths]
        launch = number or (":%d" % manifest.launch if manifest.launch else "")
        self.paths = [path + launch for path in inside]
        self._root = folder
        if inside:
            is_one_folder = len(inside) == 1 and os.path.isdir(inside[0])
            self._root = inside[0] if is_one_folder else os.path.dirname(inside[0])

    def state(self, host: str, pid: int) -> Optional[str]:
        """Return the kernel's letter for a process when the bundle was made; None if it did not run there then."""
        return self.manifest.states.get("%s/%d" % (host, pid))

    def source(self, path: str) -> str:
        """Return where a file of the job's source is; empty if the bundle does not hold it."""
        inside = self.manifest.sources.get(path)
        return os.path.join(self.folder, inside) if inside else ""

    def shown(self, text: str) -> str:
        """Return a text in which the folder where the bundle was unpacked is replaced by the bundle's name."""
        return text.replace(self._root, self.name).replace(self.folder, self.name)


_OPEN: List[OpenBundle] = []


def current() -> Optional[OpenBundle]:
    """Return the bundle that is being read; None if it is a run of this host."""
    return _OPEN[-1] if _OPEN else None


def shown(text: str) -> str:
    """Return a path, or a text with paths, as a person named it."""
    return remote.shown(_OPEN[-1].shown(text) if _OPEN else text)


def read_at() -> float:
    """Return when the run was read first: a job that hung then may have ended since."""
    return _OPEN[-1].manifest.made if _OPEN else time.time()


def unreadable() -> Dict[str, str]:
    """Return the files of the run that could not be read when the bundle was made, and why."""
    return {os.path.join(_OPEN[-1].folder, path): why for path, why in _OPEN[-1].manifest.unreadable.items()} if _OPEN else {}


def refuse(paths: Sequence[str], what: str) -> None:
    """Refuse to do with a bundle what needs a run that goes on."""
    for path in paths:
        if is_bundle(_numbered(path)[0]):
            raise UsageError(
                say("{path} is a bundle, which does not change.", path=path),
                say(
                    "'python -m ddp_probe report {path}' says what it holds; {command} needs a run.",
                    path=path,
                    command=what,
                ),
            )


@contextlib.contextmanager
def opened(paths: Sequence[str]) -> Iterator[List[str]]:
    """Yield the paths to read: those inside the bundle if one is named, what is elsewhere brought here, else the same."""
    with contextlib.ExitStack() as stack:
        paths = remote.brought(paths, stack)
        bundle = unpack(paths, stack)
        yield list(paths) if bundle is None else stack.enter_context(reading(bundle))


def unpack(paths: Sequence[str], stack: contextlib.ExitStack) -> Optional[OpenBundle]:
    """Return the bundle if one is named, unpacked until the stack is closed."""
    bundle = next((path for path in paths if is_bundle(_numbered(path)[0])), None)
    if bundle is None:
        return None
    if len(paths) > 1:
        what_to_do = say("Name {bundle} without the other paths.", bundle=bundle)
        raise UsageError("A bundle is read alone.", what_to_do)
    path, number = _numbered(bundle)
    folder = path if os.path.isdir(path) else _top(stack.enter_context(unpacked(path)), path)
    return OpenBundle(path, folder, _manifest(folder, path), number)


@contextlib.contextmanager
def reading(bundle: OpenBundle) -> Iterator[List[str]]:
    """Yield the paths inside an unpacked bundle; while it is open, messages use the bundle's name."""
    try:
        with within(bundle):
            yield bundle.paths
    except ProbeError as exc:
        exc.what, exc.why, exc.what_to_do = map(bundle.shown, (exc.what, exc.why, exc.what_to_do))
        raise


@contextlib.contextmanager
def within(bundle: Optional[OpenBundle]) -> Iterator[None]:
    """Read in this bundle; in what is read already if there is none."""
    if bundle is None:
        yield
        return
    _OPEN.append(bundle)
    try:
        yield
    finally:
        _OPEN.remove(bundle)


def _numbered(path: str) -> Tuple[str, str]:
    """Split BUNDLE:3, the third launch, unless a file of that name exists."""
    match = re.fullmatch(r"(.+)(:[1-9][0-9]{0,6})", path, re.DOTALL)
    return (path, "") if match is None or os.path.lexists(path) else (match[1], match[2])


def is_bundle(path: str) -> bool:
    """Return whether a path is that of a bundle, packed or not."""
    return os.path.isfile(os.path.join(path, MANIFEST)) if os.path.isdir(path) else looks_packed(path)


def _top(folder: str, path: str) -> str:
    """Return the only folder that a bundle consists of."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder)[:_FEW]]
    if len(paths) != 1 or not os.path.isdir(paths[0]):
        raise not_a_bundle(path, "It does not consist of one folder.")
    return paths[0]


def _manifest(folder: str, path: str) -> Manifest:
    file = os.path.join(folder, MANIFEST)
    try:
        if os.path.getsize(file) > _LARGEST:
            raise not_a_bundle(path, say("Its {file} is too large.", file=MANIFEST))
        with open_bytes(file) as stream:
            manifest = msgspec.json.decode(stream.read(), type=Manifest)
    except FileNotFoundError:
        raise not_a_bundle(path, say("It does not hold {file}.", file=MANIFEST)) from None
    except (*UNREADABLE, OSError) as exc:
        raise not_a_bundle(path, say("Its {file} is not valid: {reason}.", file=MANIFEST, reason=quoted(exc))) from exc
    if manifest.bundle != VERSION:
        raise not_a_bundle(
            path,
            say(
                "It is of version {version}; this ddp_probe reads version {newest}.",
                version=manifest.bundle,
                newest=VERSION,
            ),
        )
    inside = [*manifest.paths, *manifest.sources.values()]
    if not manifest.paths or any(os.path.isabs(name) or ".." in name.split("/") for name in inside):
        raise not_a_bundle(path, say("Its {file} names files outside of it.", file=MANIFEST))
    return manifest
