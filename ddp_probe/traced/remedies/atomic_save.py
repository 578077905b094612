"""A checkpoint that others can read half written, and that a power cut leaves half written."""

import errno
import itertools
import os
import shutil
import socket
import stat
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.facts.checkpoint_file import path_of
from ddp_probe.traced.patching import Call, Change, guard
from ddp_probe.traced.remedies import Remedy

_PREFIX = ".ddp_probe_save"
_FORGOTTEN = 3600.0  # Seconds without a byte after which a save by a process that cannot be seen from here counts as dead.

_counter = itertools.count(1)


class _Saver(NamedTuple):
    """Who makes a save, and which one: the parts of a folder's name."""

    namespace: str  # The processes whose numbers mean the same as here.
    pid: str
    started: str  # In the kernel's ticks.
    save: str  # A per-process save counter.


def name() -> str:
    """Return a folder name that no other save has."""
    pid = os.getpid()
    return "-".join((_PREFIX, *_Saver(_namespace(), str(pid), _started(pid), str(next(_counter)))))


def _saver(folder: str) -> Optional[_Saver]:
    """Return whose folder this is, or None if its name has another form."""
    parts = os.path.basename(folder)[len(_PREFIX) + 1 :].split("-")
    return _Saver(*parts) if len(parts) == len(_Saver._fields) else None


def sweep(own: str) -> None:
    """Remove what others have left beside this folder, which was made a moment ago and so carries the file server's time."""
    with suppress(OSError):
        parent, now = os.path.dirname(own), os.stat(own).st_mtime
        stages = [name for name in os.listdir(parent) if name.startswith(_PREFIX + "-")]
        for name in stages:
            if name != os.path.basename(own) and _is_abandoned(os.path.join(parent, name), now):
                remove(os.path.join(parent, name))


def remove(folder: str) -> None:
    """Remove a folder and the files in it, as far as that is allowed."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            os.unlink(entry.path)
        os.rmdir(folder)


def _is_abandoned(folder: str, now: float) -> bool:
    """Tell whether the process that made this folder has ended."""
    saver = _saver(folder)
    if saver is not None and saver.namespace == _namespace() and saver.pid.isdecimal() and saver.started:
        return _started(int(saver.pid)) != saver.started
    return now - _last_byte(folder) > _FORGOTTEN


def _last_byte(folder: str) -> float:
    return max([os.stat(folder).st_mtime, *(entry.stat().st_mtime for entry in os.scandir(folder))])


def _namespace() -> str:
    """Name the processes whose numbers mean the same as here: one boot of one kernel, one PID namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            words = "%s %d" % (file.read().strip(), os.stat("/proc/self/ns/pid").st_ino)
    except ours(OSError):
        words = socket.gethostname()
    return "%08x" % zlib.crc32(words.encode("utf-8", "replace"))


def _started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; empty if it exited, even as a zombie."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except ours(OSError):
        return ""
    return "" if fields[0] in (b"Z", b"X", b"x") else fields[19].decode("ascii")


# What others are saving: a load waits for it, as the path has the file, or the newer one, only at the end of the save.

_ENTRIES = 10_000  # of one folder
_FOLDERS = 1_000
_TICK = 0.05  # Seconds; two entries that are made within less may leave a folder with the same time.


class _Quiet(NamedTuple):
    """A folder in which no save was under way, by its time: a data set of many small files is looked through once."""

    mtime_ns: int
    since: float
    sure: bool


_quiet: Dict[str, _Quiet] = {}


def stage_of(path: str) -> str:
    """Return the folder in which another process is saving this path now; empty if none is."""
    parent, base = os.path.split(os.path.realpath(path))
    with suppress(OSError):
        mtime_ns, before = os.stat(parent).st_mtime_ns, _quiet.get(parent)
        same = before is not None and before.mtime_ns == mtime_ns
        if before is not None and same and before.sure:
            return ""
        stages = _stages(parent)
        stage = next((name for name in stages if is_underway(name, base)), "")
        if not stages:
            if len(_quiet) >= _FOLDERS:
                _quiet.clear()
            since = before.since if before is not None and same else time.monotonic()
            _quiet[parent] = _Quiet(mtime_ns, since, time.monotonic() - since > _TICK)
        return stage
    return ""


def _stages(parent: str) -> List[str]:
    with os.scandir(parent) as entries:
        return [entry.path for entry in itertools.islice(entries, _ENTRIES) if entry.name.startswith(_PREFIX + "-")]


def is_underway(folder: str, base: str) -> bool:
    """Tell whether another process may still be saving a file of this name in a folder: it has the file, or none yet, and the process lives."""
    saver = _saver(folder)
    try:
        names = os.listdir(folder)
    except ours(OSError):
        return False
    if saver is None or (names and base not in names):
        return False
    if not is_here(folder):
        return True
    return saver.pid.isdecimal() and int(saver.pid) != os.getpid() and _started(int(saver.pid)) == saver.started


def is_here(folder: str) -> bool:
    """Tell whether the process that made this folder can be seen from here."""
    saver = _saver(folder)
    return saver is not None and saver.namespace == _namespace()


# A folder beside a path, in which a file is written until it is whole and can replace the path in one step.

# The errors of a file system that cannot flush; any other failure to flush means that the save is not on the disk.
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EROFS)


class Stage:
    """The folder into which a save writes first."""

    def __init__(self, path: str, folder: str, says: Callable[[str], None]) -> None:
        self.path = path
        self.folder = folder
        # Under the same name: torch puts a file's name into the archive.
        self.file = os.path.join(folder, os.path.basename(path))
        self.says = says

    @classmethod
    def beside(cls, path: str, says: Callable[[str], None]) -> "Union[Stage, str]":
        """Return a stage, or why there is none: empty if the save will fail by itself. says gets what the stage could not do later."""
        because = _in_the_way(path)
        if because is not None:
            return because
        folder = os.path.join(os.path.dirname(path), name())
        try:
            os.mkdir(folder, 0o700)
        except ours(FileNotFoundError, NotADirectoryError):
            return ""
        except ours(OSError) as exc:
            return "%s does not take a second file: %s" % (os.path.dirname(path), exc.strerror)
        sweep(folder)
        return cls(path, folder, says)

    def commit(self) -> None:
        """Flush the file to the disk and rename it to the path. If the path cannot be replaced, write over it, as the job would."""
        old = status(self.path)
        if old is not None:
            _keep(self.path, old, self.file)
        _flush(self.file)
        try:
            os.replace(self.file, self.path)
        except ours(OSError) as exc:  # A file that is a mount of its own, another user's file in a folder such as /tmp, no rename at all.
            self.says("%s cannot be replaced, and was written over: %s" % (self.path, exc.strerror))
            shutil.copyfile(self.file, self.path)
            _flush(self.path)
        with suppress(OSError):  # Some file systems cannot flush a folder.
            _flush(os.path.dirname(self.path))
        self.clear()

    def clear(self) -> None:
        """Remove the folder and everything in it."""
        remove(self.folder)


def status(path: str) -> Optional[os.stat_result]:
    """Return the status of what is at a path, or None."""
    try:
        return os.stat(path)
    except ours(OSError):
        return None


def _in_the_way(path: str) -> Optional[str]:
    """Return why a new file must not replace the file at the path; None if it may."""
    old = status(path)
    if old is None:
        return "" if os.path.islink(path) else None  # Links in a circle.
    if not stat.S_ISREG(old.st_mode):
        return "%s is not a regular file" % path
    if old.st_nlink > 1:
        return "%s has several names (hard links), and a new file would have only one of them" % path
    if not os.access(path, os.W_OK):
        return ""
    if old.st_uid != os.geteuid() and os.geteuid():
        return "%s belongs to another user, and a new file would belong to this one" % path
    return None


def _keep(path: str, old: os.stat_result, new: str) -> None:
    """Give a new file the owner, the permissions and the access list of the file that it replaces, if the file system has them."""
    with suppress(OSError):
        os.chown(new, old.st_uid, old.st_gid)
    for name, value in _attributes(path):
        with suppress(OSError):
            os.setxattr(new, name, value)
    with suppress(OSError):
        os.chmod(new, stat.S_IMODE(old.st_mode))


def _attributes(path: str) -> Iterator[Tuple[str, bytes]]:
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        for name in os.listxattr(path):
            yield name, os.getxattr(path, name)


def _flush(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except ours(OSError) as exc:
        if exc.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(fd)


class AtomicSave(Remedy):
    """A save to a path is written beside it, flushed to the disk, and renamed to the path in one step."""

    word = "atomic-save"
    order = 100
    targets = ("torch.serialization:save", "mmengine.fileio.backends.local_backend:LocalBackend.put")
    when = "Always, for a save to a path; streams are the job's own."
    for_good = "torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path)"

    def prepare(self, call: Call) -> Optional[Change]:
        """Let the save write into a separate folder beside the path."""
        parameter = "filepath" if call.target.qualname.endswith("put") else "f"
        given = call.arguments().get(parameter)
        path = self._path(call, given)
        if not path:
            return None
        if parameter == "filepath":
            _make_folder(path)
        stage = Stage.beside(os.path.realpath(path), lambda because: guard.run(self.name, self.declined, call, because))
        if isinstance(stage, str):
            if stage:
                self.declined(call, stage)
            return None
        return self._change(parameter, path, stage)

    def _path(self, call: Call, given: Any) -> str:
        """Return the path of the save; empty for a stream, and for a path that cannot name a file."""
        path = path_of(given) if not isinstance(given, bytes) else None
        if path is None and hasattr(type(given), "__fspath__"):
            self.declined(call, "the path is an object of the job's own class, whose code is not run to get it")
        return path if path and os.path.basename(path) and "\0" not in path else ""

    def _change(self, parameter: str, path: str, stage: Stage) -> Change:
        after = {parameter: stage.file, "then": "renamed to %s" % stage.path}
        return Change(
            {parameter: path},
            after,
            "a save to a path is not atomic",
            arguments={parameter: stage.file},
            commit=stage.commit,
            rollback=stage.clear,
            precaution=True,
        )


def _make_folder(path: str) -> None:
    """Make the folder, as mmengine's save does first; mmengine expands ~ here, but not when it opens the file."""
    if not path.startswith("~"):
        with suppress(OSError):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


REMEDY = AtomicSave
