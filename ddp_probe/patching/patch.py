"""What the ledger knows: a patch is one watch on one target, a seat is one wrapper in one place."""

from typing import Any, Callable, List, Optional, Tuple

from .call import Names
from .chain import leads_to
from .describe import describe
from .mend import Mend
from .place import MISSING, Place
from .target import Target
from .watch import Watch


class Seat:
    """One wrapper: the place it sits in, what sat there before, and who watches."""

    __slots__ = ("target", "place", "raw", "original", "bound", "placed", "wrapper", "patches", "retired", "names", "aliases", "always", "mends")

    def __init__(self, target: Target, place: Place, raw: Any, original: Callable[..., Any], bound: bool) -> None:
        self.target = target
        self.place = place
        self.raw = raw
        self.original = original
        self.bound = bound
        self.placed: Any = None
        self.wrapper: Any = None
        self.patches: Tuple[Patch, ...] = ()
        self.mends: Tuple[Patch, ...] = ()  # those that may change the call; none without DDP_PROBE_FIX
        self.retired = False
        self.always = False  # a watch here wants to see calls while the switch is off as well
        self.names = Names(original)
        self.aliases: List[Place] = []

    def count_stale(self) -> None:
        """Note a call that came through this wrapper after it was retired."""
        for patch in (*self.patches, *self.mends):
            patch.stale_calls += 1

    def watched_by(self, name: str) -> Optional["Patch"]:
        """Return the patch of the watch with this name, if it is here."""
        return next((patch for patch in (*self.patches, *self.mends) if patch.name == name), None)

    def holds(self) -> bool:
        """Tell whether the place still leads to our wrapper, directly or through somebody else's."""
        found = self.place.read()
        return found is self.placed or leads_to(found, self.wrapper)


class Patch:
    """One watch on one target: in place or not, why not, and what went through it."""

    def __init__(self, target: Target, watch: Watch) -> None:
        self.target = target
        self.watch = watch
        self.name = watch.name
        self.label = str(target)
        self.outermost = bool(watch.outermost)
        self.state = "skipped"
        self.why = ""
        self.calls = 0
        self.stale_calls = 0
        self.seat: Optional[Seat] = None

    @property
    def aliases(self) -> List[str]:
        """Return the other names of the original that were replaced, as module.attribute."""
        return [alias.label for alias in self.seat.aliases] if self.seat is not None else []

    def overwritten_by(self) -> Optional[str]:
        """Say who took our place; None where the place still leads to our wrapper, or was never ours."""
        if self.seat is None or self.seat.retired or self.seat.holds():
            return None
        found = self.seat.place.read()
        return "nothing, the attribute is gone" if found is MISSING else describe(found)

    def take(self, seat: Seat) -> None:
        """Join the watches of this seat."""
        self.seat = seat
        self.state = "patched"
        self.why = ""
        if isinstance(self.watch, Mend):
            seat.mends = seat.mends + (self,)
        else:
            seat.patches = seat.patches + (self,)
        seat.always = seat.always or bool(self.watch.always)
