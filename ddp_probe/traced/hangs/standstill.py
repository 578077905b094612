"""Whether the ranks of this host stand still together, what is said of it, and that they move on: for a launcher, or for a rank without one."""

import os
import re
import time
from typing import Callable, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.shared import schema
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.birth import ancestors
from ddp_probe.traced.hangs.daemon import by_boot
from ddp_probe.traced.hangs.others import Others, Owner
from ddp_probe.traced.hangs.place_in_ledger import Hang
from ddp_probe.traced.hangs.places import Whereabouts, in_native_code, named, parted, together
from ddp_probe.traced.hangs.unheard import Unheard
from ddp_probe.traced.record import Recorder, brief, stderr

_LATE = 0.25
"""Seconds by which a watcher may wake late."""
_LONGEST = 20.0
"""Seconds that a verdict takes at most; longer than the child may, which makes it."""
Owners = List[Tuple[Owner, int]]
"""Ledgers of running processes, each with the time when it has moved last."""


class Seen(NamedTuple):
    """All ranks of this host at one moment in which none of them has moved for long."""

    owners: Owners
    places: List[Tuple[int, Whereabouts]]
    has_lowest: bool  # Of all ranks that have a ledger in the folder, on any host.

    @property
    def ranks(self) -> List[int]:
        """Return their ranks."""
        return [owner.rank for owner, _ in self.owners]

    @property
    def is_all(self) -> bool:
        """Tell whether these are all ranks of the job."""
        return all(owner.world_size == len(self.owners) for owner, _ in self.owners)

    @property
    def calm(self) -> str:
        """Say that nothing may be wrong: who is waited for evaluates, saves, imports or is in a debugger, or may still start."""
        free = [place for _, place in self.places if not place.waits]
        if free and all(place.task for place in free):
            return " Nothing is wrong if that takes so long."
        all_join = all(place.words.startswith("in init_process_group") for _, place in self.places)
        joining = not free and not self.is_all and all_join
        return " Nothing is wrong if the ranks that have not come there still start or import." if joining else ""


class Standstill:
    """Looks; says why nothing moves by `verdict`, which may answer with nothing; says it again at growing intervals."""

    def __init__(
        self,
        others: Others,
        after: float,
        recorder: Recorder,
        verdict: Callable[[Seen], str],
        stacks: Callable[[List[schema.LauncherSilent]], List[schema.LauncherSilent]] = list,
    ) -> None:
        self._others = others
        self._after = after
        # The ranks' own watchers look every quarter: their stacks are written first, and the verdict names their lines.
        self._grace = 2 * min(1.0, after / 4)
        self._recorder = recorder
        self._verdict = verdict
        self._stacks = stacks  # Adds the stacks of ranks in which native code holds the GIL.
        self._is_silent = not brief.is_wanted()
        self._hang = Hang(after)
        self._told: Owners = []
        self._resumed = 0
        self._unheard: Optional[Unheard] = None
        self.is_ending = False  # A signal ends the ranks: those that unwind because of it do not move on.

    def resume(self) -> None:
        """Count from here: this process, or all that it looks at, did not run for a while."""
        self._resumed = time.monotonic_ns()

    def resumed(self, event: Optional[schema.Event]) -> None:
        """Write that this process did not run for a while, and count from here, if it was so."""
        if event is not None:
            self._recorder.point(event)
            self.resume()

    def look(self, now: int = 0) -> None:
        """Say that the ranks stand still, or that they move on; `now` is when this process has woken."""
        now = now or time.monotonic_ns()
        self.tell_over()
        newest = self._others.newest(now - int(self._after * 1e9))
        self._hang.over(newest)
        if not newest or not self._hang.is_due((now - max(newest, self._resumed)) / 1e9 - self._grace):
            self._unheard = None
        elif self._is_sure():
            self._hang.pass_on(reported=self._tell(newest))
            self._unheard = None
            while self._hang.is_due(_since(newest)):  # It was said late.
                self._hang.pass_on(reported=False)

    def _is_sure(self) -> bool:
        """Tell whether to speak now. That all ranks are paused is not a hang; one whose watcher does not wake may have been let go on this moment."""
        owners = [owner for owner, _ in self._others.alive()]
        if owners and all(owner.is_paused() for owner in owners):
            self.resume()
            return False
        if self._unheard is not None and self._unheard.is_over():
            self.resume()
            return False
        if self._unheard is not None:
            return True
        self._unheard = Unheard(owners, self._grace + _LATE)
        return not self._unheard

    def tell_over(self) -> None:
        """Say that ranks move on, if it was reported that they do not."""
        if self.is_ending:
            return
        moved = [(owner, then, owner.moved()) for owner, then in self._told]
        moved = [(owner, then, now) for owner, then, now in moved if now > then]
        if not moved:
            return
        lasted = (min(now for _, _, now in moved) - max(then for _, then in self._told)) / 1e9
        self._told = []
        ranks = [owner.rank for owner, _, _ in moved]
        self._recorder.point(schema.LauncherResumed(lasted=lasted, ranks=ranks))
        verb = "moves" if len(ranks) == 1 else "move"
        self._say("%s %s on after %.0f s." % (named(ranks).capitalize(), verb, lasted))

    def _tell(self, newest: int) -> bool:
        owners, began = self._others.alive(), by_boot()
        holders = self._holders()
        places: List[Tuple[int, Whereabouts]] = []
        for owner, _ in owners:
            place = owner.place()
            if place is not None:
                places.append((owner.rank, in_native_code(place) if owner.rank in holders else place))
        seen = Seen(owners, places, self._is_lowest(owners))
        if any(place.waits for _, place in seen.places):
            text = self._verdict(seen)
        elif seen.places and all(place.still >= self._after / 2 for _, place in seen.places):
            command = brief.command("stacks", self._others.folder)
            text = "No call of torch.distributed says why. %s Read on: %s" % (together(seen.places), command)
        else:
            return False
        if by_boot() - began > _LONGEST:  # This process has been paused meanwhile.
            self.resume()
            return False
        if not text or any(owner.moved() != then for owner, then in owners):
            return False
        since = _since(newest)
        gone = [] if seen.is_all else self._others.gone()
        sentences = ["No rank%s has moved for %.0f s." % ("" if seen.is_all else " on this host", since)]
        if gone:
            ended = "The process of %s has ended." if len(gone) == 1 else "The processes of %s have ended."
            sentences.append(ended % named(gone))
        line = " ".join([*sentences, text])
        self._told = owners
        self._recorder.point(schema.LauncherHang(since=since, ranks=seen.ranks, gone=gone, said=line))
        self._say(line)
        return True

    def _holders(self) -> Set[int]:
        """Write which ranks run no Python code, and return those that are not paused: there native code holds the GIL."""
        events = self._stacks(self._unheard.events()) if self._unheard is not None else []
        for event in events:
            self._recorder.point(event)
        return {event.child_rank for event in events if event.child_rank is not None and not event.paused}

    def _is_lowest(self, owners: Owners) -> bool:
        return any(owner.rank <= self._others.lowest for owner, _ in owners)

    def _say(self, text: str) -> None:
        if not self._is_silent:
            stderr.say(text)


def _since(when: int) -> float:
    return (time.monotonic_ns() - when) / 1e9


def read_on(folder: str) -> str:
    """Return how to read on, to end a line with."""
    return "Read on: %s" % brief.command("report", folder)


# Ranks without a launcher of ours: the lowest of a host says that its ranks stand still, from its own watcher's thread.
#
# A rank starts no process, so there is no verdict: it says where each rank stands, as the ledgers tell it.

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
            self._standstill.look(now)

    def tell_over(self) -> None:
        """Say that ranks move on, if it was reported that they do not."""
        self._standstill.tell_over()

    def resume(self) -> None:
        """Count from here: this process did not run for a while."""
        self._standstill.resume()

    def _is_lowest(self) -> bool:
        """Tell whether this is the lowest of those that can speak: in the others Python code runs."""
        self._others.newest(0)
        heard = [owner.path for owner, _ in self._others.alive() if owner.silence() < self._patience / 2e9]
        return heard[:1] == [self._path]


def _parted(seen: Seen) -> str:
    """Say which rank has left the sequence of calls, if all of the job are here and wait."""
    if not seen.is_all or len(seen.places) != len(seen.owners) or not all(place.waits for _, place in seen.places):
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
        match = _PID.search(file.readline(_LINE))
    return int(match.group(1)) if match is not None else -1
