"""Ranks without a launcher of ours: the lowest of a host says that its ranks stand still, from its own watcher's thread.

A rank starts no process, so there is no verdict: it says where each rank stands, as the ledgers tell it.
"""

import os
import re

from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.birth import ancestors
from ddp_probe.traced.hangs._others import Others
from ddp_probe.traced.hangs._places import parted, together
from ddp_probe.traced.hangs._standstill import Seen, Standstill, read_on
from ddp_probe.traced.record import Recorder

_PID = re.compile(rb'"pid":(\d+)')
_LINE = 1 << 16


class Unled:
    """What a rank does for the ranks of its host, once it has not moved itself for long."""

    def __init__(self, path: str, folder: str, after: float, recorder: Recorder) -> None:
        self._path = path  # Of its ledger; of its log, if it has none yet.
        self._folder = folder
        self._host = os.path.basename(path).split(".")[1]
        self._patience = int(after * 1e9)
        self._others = Others(folder, self._host, lambda _: True)
        how = read_on(folder)
        self._standstill = Standstill(
            self._others, after, recorder, lambda seen: "%s%s%s %s" % (_parted(seen), together(seen.places), seen.calm, how)
        )
        self._moved = 0
        self._is_asked = self._speaks = False

    def look(self, moved: int, now: int) -> None:
        """Look at the others if this process has not moved since then for long; whether it speaks is decided once for each standstill."""
        if moved != self._moved:
            self._moved, self._is_asked, self._speaks = moved, False, False
        if now - moved < self._patience:
            return
        if not self._is_asked:
            self._is_asked, self._speaks = True, self._is_lowest() and not has_launcher(self._folder, self._host)
        if self._speaks:
            self._standstill.look()

    def tell_over(self) -> None:
        """Say that ranks move on, if it was told that they do not."""
        self._standstill.tell_over()

    def _is_lowest(self) -> bool:
        self._others.newest(0)
        return [owner.path for owner, _ in self._others.alive()[:1]] == [self._path]


def _parted(seen: Seen) -> str:
    """Say which rank has left the sequence of calls, if all of the job are here and wait."""
    if not seen.is_all or len(seen.places) != len(seen.owners) or not all(one.waits for _, one in seen.places):
        return ""
    return parted((owner.rank, owner.whole()) for owner, _ in seen.owners)


def has_launcher(folder: str, host: str) -> bool:
    """Tell whether a launcher that writes to this folder is above this process: then it speaks."""
    above = set(ancestors(os.getpid()))
    try:
        names = [name for name in os.listdir(folder) if name.startswith("launcher.%s." % host)]
        return any(_pid(os.path.join(folder, name)) in above for name in names)
    except ours(OSError):
        return False


def _pid(path: str) -> int:
    """Return the process of a log."""
    with open(path, "rb") as file:
        found = _PID.search(file.readline(_LINE))
    return int(found.group(1)) if found is not None else -1
