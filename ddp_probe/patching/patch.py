"""What the ledger knows: a patch is one watch on one target, a seat is one wrapper in one place."""

from typing import Any, Callable, List, Optional, Tuple

from .call import Names
from .chain import leads_to
from .describe import describe
from .observer import Observer
from .override import Override
from .slot import MISSING, Slot
from .target import Target


class PatchSite:
    """One wrapper: the place it sits in, what sat there before, and who watches."""

    __slots__ = ("target", "slot", "raw", "original", "bound", "placed", "wrapper", "patches", "retired", "names", "aliases", "always", "overrides")

    def __init__(self, target: Target, slot: Slot, raw: Any, original: Callable[..., Any], bound: bool) -> None:
        self.target = target
        self.slot = slot
        self.raw = raw
        self.original = original
        self.bound = bound
        self.placed: Any = None
        self.wrapper: Any = None
        self.patches: Tuple[Patch, ...] = ()
        self.overrides: Tuple[Patch, ...] = ()  # those that may change the call; none without DDP_PROBE_FIX
        self.retired = False
        self.always = False  # a watch here wants to see calls while the switch is off as well
        self.names = Names(original)
        self.aliases: List[Slot] = []

    def count_stale(self) -> None:
        """Note a call that came through this wrapper after it was retired."""
        for patch in (*self.patches, *self.overrides):
            patch.stale_calls += 1

    def watched_by(self, name: str) -> Optional["Patch"]:
        """Return the patch of the watch with this name, if it is here."""
        return next((patch for patch in (*self.patches, *self.overrides) if patch.name == name), None)

    def holds(self) -> bool:
        """Tell whether the place still leads to our wrapper, directly or through somebody else's."""
        found = self.slot.read()
        return found is self.placed or leads_to(found, self.wrapper)


class Patch:
    """One watch on one target: in place or not, why not, and what went through it."""

    def __init__(self, target: Target, observer: Observer) -> None:
        self.target = target
        self.observer = observer
        self.name = observer.name
        self.label = str(target)
        self.outermost = bool(observer.outermost)
        self.state = "skipped"
        self.why = ""
        self.calls = 0
        self.stale_calls = 0
        self.patch_site: Optional[PatchSite] = None

    @property
    def aliases(self) -> List[str]:
        """Return the other names of the original that were replaced, as module.attribute."""
        return [alias.label for alias in self.patch_site.aliases] if self.patch_site is not None else []

    def overwritten_by(self) -> Optional[str]:
        """Say who took our place; None where the place still leads to our wrapper, or was never ours."""
        if self.patch_site is None or self.patch_site.retired or self.patch_site.holds():
            return None
        found = self.patch_site.slot.read()
        return "nothing, the attribute is gone" if found is MISSING else describe(found)

    def take(self, patch_site: PatchSite) -> None:
        """Join the watches of this seat."""
        self.patch_site = patch_site
        self.state = "patched"
        self.why = ""
        if isinstance(self.observer, Override):
            patch_site.overrides = patch_site.overrides + (self,)
        else:
            patch_site.patches = patch_site.patches + (self,)
        patch_site.always = patch_site.always or bool(self.observer.always)
