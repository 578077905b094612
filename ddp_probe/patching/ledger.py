"""The ledger: what was put where, and how to take all of it back."""

import os
import threading
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from ddp_probe.ours import ours

from .census import holders
from .certificate import Certificate
from .describe import describe
from .holders import keeping_originals
from .patch import Patch, Seat
from .place import Place, is_class, locate
from .restore import restore
from .target import Target
from .watch import Watch
from .wrapper import Wrapper, without_us, wrapper_in

_lock = threading.RLock()


def _renew() -> None:
    """Give a forked child a lock of its own: the one it inherits may be held by a thread that does not exist there."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew)


class Ledger:
    """Every patch of this process. Applying never raises; undoing leaves the ledger empty and ready."""

    def __init__(self) -> None:
        self._patches: Dict[Tuple[Target, str], Patch] = {}
        self._seats: List[Seat] = []

    def apply(self, target: Target, watch: Watch) -> Patch:
        """Put the watch on the target, whose module has to be imported. The patch says whether that worked."""
        return self.apply_all([(target, watch)])[0]

    def apply_all(self, pairs: Iterable[Tuple[Target, Watch]], aliases: bool = True) -> List[Patch]:
        """Apply many with one look through sys.modules, which is what applying costs once torch is there (10 ms).

        A module that has this moment been executed has no aliases yet: say so, and the look is spared.
        """
        with _lock:
            before = len(self._seats)
            patches = [self._try(target, watch) for target, watch in pairs]
            if aliases:
                self._replace_aliases(self._seats[before:])
            return patches

    def patches(self) -> List[Patch]:
        """Return every patch, in order of application."""
        return list(self._patches.values())

    def missed(self) -> Dict[str, List[str]]:
        """Name who kept an original from before it was patched, by target. Asks the garbage collector: for a late start, once."""
        return keeping_originals(self._seats)

    def undo(self) -> Certificate:
        """Put everything back and say what was found. A call that is running finishes as it began."""
        with _lock:
            seats, self._seats = self._seats, []
            self._patches = {}
            return Certificate(restore(seats))

    def _try(self, target: Target, watch: Watch) -> Patch:
        patch = self._patches.get((target, watch.name)) or Patch(target, watch)
        try:
            return self._apply(patch)
        except ours(Exception) as exc:  # A class that cannot be written to, or something stranger: the job goes on without this patch.
            patch.why = "%s cannot be patched: %s." % (target, type(exc).__name__)
            return self._keep(patch)

    def _apply(self, patch: Patch) -> Patch:
        found = locate(patch.target)
        if isinstance(found, str):
            patch.why = patch.why if patch.state == "patched" else found
            return self._keep(patch)
        place, raw = found
        if patch.seat is not None and self._same(patch.seat.place, place) and patch.seat.holds():
            return patch
        seat = self._seat(patch.target, place, raw)
        if isinstance(seat, str):
            patch.state, patch.why = "skipped", seat
            return self._keep(patch)
        present = seat.watched_by(patch.name)
        if present is None:
            patch.take(seat)
        return present or self._keep(patch)

    def _keep(self, patch: Patch) -> Patch:
        self._patches[(patch.target, patch.name)] = patch
        return patch

    @staticmethod
    def _same(one: Place, other: Place) -> bool:
        return one.holder is other.holder and one.attribute == other.attribute

    def _seat(self, target: Target, place: Place, raw: Any) -> Union[Seat, str]:
        """Return the seat at this place, made now where there is none, or a sentence saying why there cannot be one."""
        present = self._present(place, raw)
        if present is not None:
            return present
        wrapper = wrapper_in(raw) if place.existed else None
        if wrapper is not None and not wrapper._self_seat.retired:
            return "%s is patched by another ledger." % str(target)
        raw = without_us(raw) if wrapper is not None else raw
        original = raw.__func__ if type(raw) in (classmethod, staticmethod) else raw
        if is_class(original) or not callable(original):
            return "%s is not a function but %s." % (target, describe(original))
        return self._make(Seat(target, place, raw, original, place.in_class and type(raw) is not staticmethod))

    def _present(self, place: Place, raw: Any) -> Optional[Seat]:
        for seat in self._seats:
            if (place.existed and raw is seat.placed) or (self._same(seat.place, place) and seat.holds()):
                return seat
        return None

    def _make(self, seat: Seat) -> Seat:
        seat.wrapper = Wrapper(seat)
        kind = type(seat.raw)
        seat.placed = kind(seat.wrapper) if kind in (classmethod, staticmethod) else seat.wrapper
        self._seats.append(seat)  # First: what a signal handler of the job's cuts short here is still undone.
        try:
            seat.place.write(seat.placed)
        except ours(Exception):
            self._seats.pop()
            raise
        return seat

    @staticmethod
    def _replace_aliases(seats: List[Seat]) -> None:
        """Replace the other names of what was wrapped; an inherited original belongs to another class and keeps its names."""
        wanted = {id(seat.original): seat for seat in seats if seat.place.existed}
        for alias, original in holders(wanted) if wanted else ():
            seat = wanted[id(original)]
            alias.write(seat.wrapper)
            seat.aliases.append(alias)
