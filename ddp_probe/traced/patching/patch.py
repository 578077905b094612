"""What the registry keeps: a patch site is one wrapper in one slot, a patch is one observer at one site."""

from typing import Any, Callable, Dict, List, Optional, Tuple

from ddp_probe.traced.patching.call import Call, Observer, Parameters, Target
from ddp_probe.traced.patching.slot import Slot


class PatchSite:
    """One slot whose original is replaced by a wrapper, with all patches that share this wrapper."""

    __slots__ = (
        "target",
        "slot",
        "raw",
        "original",
        "bound",
        "placed",
        "wrapper",
        "patches",
        "retired",
        "parameters",
        "aliases",
        "always",
        "overrides",
    )

    def __init__(self, target: Target, slot: Slot, raw: Any, original: Callable[..., Any], bound: bool) -> None:
        self.target = target
        self.slot = slot
        self.raw = raw
        self.original = original
        self.bound = bound
        self.placed: Any = None
        self.wrapper: Any = None
        self.patches: Tuple[Patch, ...] = ()
        self.overrides: Tuple[Patch, ...] = ()  # Those that may change the call; none without DDP_PROBE_FIX.
        self.retired = False
        self.always = False  # An observer here sees calls even while the switch is off.
        self.parameters = Parameters(original, bound)
        self.aliases: List[Slot] = []

    def call(self, patch: "Patch", instance: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Call:
        """Return a call through this site, as one of its observers sees it."""
        return Call(self.parameters, patch.target, patch.label, bool(self.overrides), instance, args, kwargs)

    def count_stale(self) -> None:
        """Count a call that came through this wrapper after it was retired."""
        for patch in (*self.patches, *self.overrides):
            patch.stale_calls += 1

    def observed_by(self, name: str) -> Optional["Patch"]:
        """Return the patch of the observer with this name, or None."""
        return next((patch for patch in (*self.patches, *self.overrides) if patch.name == name), None)


class Patch:
    """One observer on one target: whether it is in place, why not, and how many calls it has seen."""

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

    def join(self, patch_site: PatchSite) -> None:
        """Add this patch to a site."""
        self.patch_site = patch_site
        self.state = "patched"
        self.why = ""
        if self.observer.overrides:
            patch_site.overrides = patch_site.overrides + (self,)
        else:
            patch_site.patches = patch_site.patches + (self,)
        patch_site.always = patch_site.always or bool(self.observer.always)
