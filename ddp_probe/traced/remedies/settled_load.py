"""A checkpoint that is being written while it is read."""

import os
import stat
import time
from typing import Any, Callable, NamedTuple, Optional

from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.call_site import call_path
from ddp_probe.traced.facts.checkpoint_file import look, path_of
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy
from ddp_probe.traced.remedies.atomic_save import is_here, is_underway, stage_of

_QUIET = 0.05  # Seconds without a change after which a whole file counts as written; local file systems keep time to 10 ms.
_STALLED = 30.0  # Seconds of watching without a change after which half a file counts as truncated.
_OLD = 600.0  # Seconds of age after which it counts as truncated at once; no file server's clock is that far off.
_LONGEST = 600.0  # Seconds for all the waiting of one load.
_TRIES = 100
_POLL = 0.01
_PATIENCE = 5.0  # Seconds of waiting after which a person is told what the job waits for.


class _Seen(NamedTuple):
    """A file at one moment."""

    inode: int
    size: int
    mtime_ns: int


class _Watched:
    """A file, and how long it has been unchanged."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.until = time.monotonic() + _LONGEST
        self.since = time.monotonic()
        self.seen = _seen(path)
        self.loaded = self.seen  # As it was when the load began.
        self.replaced = False
        self.loads = 1

    def over(self, half: bool) -> bool:
        """Tell whether writing has stopped: by the file's own time, or by what was seen, as a file server's clock may be off."""
        age = time.time() - self.seen.mtime_ns * 1e-9 if self.seen is not None else 0.0
        still = time.monotonic() - self.since
        return (still >= _STALLED or age >= _OLD) if half else (max(still, age) >= _QUIET or self.replaced)

    def given_up(self) -> bool:
        """Tell whether the waiting, or the number of loads, has reached its limit."""
        return time.monotonic() >= self.until or self.loads >= _TRIES

    def look(self) -> bool:
        """Look again; tell whether the file has changed."""
        before, self.seen = self.seen, _seen(self.path)
        if self.seen == before:
            return False
        self.since = time.monotonic()
        self.replaced = before is not None and self.seen is not None and self.seen.inode != before.inode
        return True

    def half(self) -> bool:
        """Tell whether the file is empty, or an archive without its end."""
        file = look(self.path)
        return file.exists is not False and not file.error and (file.kind == "empty" or file.complete is False)


class _Progress:
    """A file that another process writes, and since when it has not grown."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.since = time.monotonic()
        self.seen = _seen(path)

    def stalled(self) -> bool:
        """Look again; tell whether it has not changed for so long that its writer has probably ended."""
        before, self.seen = self.seen, _seen(self.path)
        if self.seen != before:
            self.since = time.monotonic()
        return time.monotonic() - self.since >= _STALLED


class SettledLoad(Remedy):
    """torch.load waits, up to a limit, until a file that is being written is whole, and loads again if the file changed while it was read."""

    word = "settled-load"
    order = 90
    targets = ("torch.serialization:load",)
    when = (
        "The file is half written and still changing, changed during the load, or is being saved by atomic-save in another process. "
        "No collective is involved, so it cannot deadlock."
    )
    for_good = "Save to a temporary name and os.replace() it; or dist.barrier() after the save, on every rank."
    tries = _TRIES * 2  # given_up() comes first, and says so.

    def prepare(self, call: Call) -> Optional[Change]:
        """Wait for a file that is recent and not whole, or that changed a moment ago."""
        given = call.arguments()
        path = path_of(given.get("f"))
        mapped = given.get("mmap")
        if path is None or (mapped is not None and mapped is not False):
            return None  # A mapped file is read for as long as its tensors live.
        began = time.monotonic()
        missing = _seen(path) is None
        staged = self._after_a_save(call, path)
        call.note = watched = _Watched(path)
        if watched.seen is None:
            return None
        half = watched.half()
        first = "%d bytes, %s" % (watched.seen.size, "not whole" if half else "whole")
        if staged:
            first = "not there" if missing else "an older one"
        changed = _settle(watched, self._waits) or staged
        if half and watched.half():
            self.declined(call, "%s is not whole, and nobody seems to be writing it" % path)
        elif half or changed:
            waited = "whole, after %.1f s" % (time.monotonic() - began)
            return Change({"file": first}, {"file": waited}, "the file was being written")
        return None

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Load again if the file has changed since, or is still changing."""
        return self._again(call, "failed with %s" % type(exc).__name__, failed=True)

    def settled(self, call: Call, result: Any) -> Optional[Change]:
        """Load again if the file changed during the load: the result may be half of one checkpoint and half of another."""
        return self._again(call, "may be a mixture", failed=False)

    def _after_a_save(self, call: Call, path: str) -> bool:
        """Wait for a save of this path by another process with atomic-save: until its end the path has no file, or an older one."""
        stage, base = stage_of(path), os.path.basename(os.path.realpath(path))
        if not stage:
            return False
        began, progress = time.monotonic(), _Progress(os.path.join(stage, base))
        while is_underway(stage, base):
            waited = time.monotonic() - began
            if waited >= _LONGEST or (progress.stalled() and not is_here(stage)):
                self.declined(call, "%s is not saved after %.0f s" % (path, waited))
                return False
            if waited > _PATIENCE:
                self._waits_for(path)
            time.sleep(_POLL)
        return True

    def _again(self, call: Call, what: str, failed: bool) -> Optional[Change]:
        watched: Optional[_Watched] = call.note
        if watched is None:
            return None
        if watched.loaded is None:
            return self._first(call, watched, what)
        watched.look()
        if not _suspicious(watched, failed):
            return None
        if watched.given_up():
            self.declined(call, "%s kept changing, and the last load %s" % (watched.path, what))
            return None
        loaded, began = watched.loaded, time.monotonic()
        _settle(watched, self._waits)
        if watched.seen is None or watched.seen == loaded:
            return None
        watched.loads += 1
        again = "again, after %.1f s" % (time.monotonic() - began)
        return Change({"load": what}, {"load": again}, "the file changed while it was being read")

    def _first(self, call: Call, watched: _Watched, what: str) -> Optional[Change]:
        """Load once more a file that was missing, if its save has begun meanwhile."""
        began = time.monotonic()
        if watched.given_up() or not self._after_a_save(call, watched.path):
            return None
        watched.loads += 1
        watched.loaded = watched.seen = _seen(watched.path)
        again = "again, after %.1f s" % (time.monotonic() - began)
        return Change({"load": what}, {"load": again}, "the file was being written") if watched.seen is not None else None

    def _waits(self, watched: _Watched) -> None:
        self._waits_for(watched.path)

    def _waits_for(self, path: str) -> None:
        site, _ = call_path()
        self._say(site, "settled-load waits: %s is being written, or was left half written" % path, path)


def _suspicious(watched: _Watched, failed: bool) -> bool:
    now, loaded = watched.seen, watched.loaded
    if now is None or loaded is None:
        return False
    if failed:
        return now != loaded or watched.half()
    # Another inode is another file, put there whole; the file that was opened before does not change.
    return now != loaded and now.inode == loaded.inode


def _settle(watched: _Watched, waits: Callable[[_Watched], None]) -> bool:
    """Wait until the file is whole and quiet, has been replaced as a whole, or is no longer written; tell whether it changed."""
    changed, due = False, time.monotonic() + _PATIENCE
    while watched.seen is not None and time.monotonic() < watched.until:
        half = watched.half()
        if watched.over(half):
            break
        if time.monotonic() > due:
            waits(watched)
            due = watched.until
        time.sleep(_POLL)
        changed = watched.look() or changed
    watched.loaded = watched.seen
    watched.replaced = False
    return changed


def _seen(path: str) -> Optional[_Seen]:
    """Look at a file by opening it: a network file system answers questions about its name from a cache for seconds."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ours(OSError, ValueError):
        return None
    try:
        status = os.fstat(fd)
    except ours(OSError):
        return None
    finally:
        os.close(fd)
    return _Seen(status.st_ino, status.st_size, status.st_mtime_ns)


REMEDY = SettledLoad
