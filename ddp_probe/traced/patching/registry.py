"""The registry of patches: what was put where, and how to take all of it back."""

import os
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from ddp_probe.shared import threads
from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.call import Observer, Target
from ddp_probe.traced.patching.certificate import Certificate
from ddp_probe.traced.patching.compiler import hide_wrappers
from ddp_probe.traced.patching.holders import holders, keeping_originals
from ddp_probe.traced.patching.patch import Patch, PatchSite
from ddp_probe.traced.patching.slot import Slot, describe, is_class, locate
from ddp_probe.traced.patching.undo import restore
from ddp_probe.traced.patching.wrapped_chain import holds
from ddp_probe.traced.patching.wrapper import Wrapper, without_us, wrapper_in

_lock = threads.RLock()


def _renew() -> None:
    """Give a forked child its own lock: the inherited one may be held by a thread that does not exist there."""
    global _lock
    _lock = threads.RLock()


os.register_at_fork(after_in_child=_renew)


class PatchRegistry:
    """Every patch of this process. Applying never raises; undoing leaves the registry empty and ready for more."""

    def __init__(self) -> None:
        self._patches: Dict[Tuple[Target, str], Patch] = {}
        self._patch_sites: List[PatchSite] = []
        self._unaliased: List[PatchSite] = []  # Those whose other names have not been looked for yet.

    def apply(self, target: Target, observer: Observer) -> Patch:
        """Put the observer on the target, whose module must have been imported. The patch says whether that worked."""
        return self.apply_all([(target, observer)])[0]

    def apply_all(self, pairs: Iterable[Tuple[Target, Observer]], aliases: bool = True) -> List[Patch]:
        """Apply many with one pass over sys.modules, which takes 10 ms once torch is imported.

        A module that was executed a moment ago has no aliases yet; aliases=False saves the pass.
        """
        with _lock:
            aliases = aliases or bool(self._unaliased)  # A signal handler of the job's cut the last pass short.
            patches = [self._try(target, observer) for target, observer in pairs]
            if aliases:
                self._replace_aliases(self._unaliased)
            self._unaliased = []
            hide_wrappers()
            return patches

    def patches(self) -> List[Patch]:
        """Return every patch, in order of application."""
        return list(self._patches.values())

    def patch_sites(self) -> List[PatchSite]:
        """Return every patch site, in order of creation."""
        return list(self._patch_sites)

    def missed(self) -> Dict[str, List[str]]:
        """Name who kept an original from before it was patched, by target. Asks the garbage collector: for a late start, once."""
        return keeping_originals(self._patch_sites)

    def undo(self) -> Certificate:
        """Put everything back and say what was found. A call that is running finishes as it began.

        The registry is emptied last: an undo that a signal handler of the job's cuts short can be done again.
        """
        with _lock:
            certificate = Certificate(restore(self._patch_sites))
            self._patch_sites, self._patches, self._unaliased = [], {}, []
            return certificate

    def _try(self, target: Target, observer: Observer) -> Patch:
        patch = self._patches.get((target, observer.name)) or Patch(target, observer)
        try:
            return self._apply(patch)
        except ours(Exception) as exc:  # A class that cannot be written to, or something stranger: the job goes on without this patch.
            patch.why = "%s cannot be patched: %s." % (target, type(exc).__name__)
            return self._keep(patch)

    def _apply(self, patch: Patch) -> Patch:
        located = locate(patch.target)
        if isinstance(located, str):
            patch.why = patch.why if patch.state == "patched" else located
            return self._keep(patch)
        slot, raw = located
        if patch.patch_site is not None and self._same(patch.patch_site.slot, slot) and holds(patch.patch_site):
            return patch
        patch_site = self._patch_site(patch.target, slot, raw)
        if isinstance(patch_site, str):
            patch.state, patch.why = "skipped", patch_site
            return self._keep(patch)
        present = patch_site.observed_by(patch.name)
        if present is None:
            patch.join(patch_site)
        return present or self._keep(patch)

    def _keep(self, patch: Patch) -> Patch:
        self._patches[(patch.target, patch.name)] = patch
        return patch

    @staticmethod
    def _same(slot: Slot, other: Slot) -> bool:
        return slot.holder is other.holder and slot.attribute == other.attribute

    def _patch_site(self, target: Target, slot: Slot, raw: Any) -> Union[PatchSite, str]:
        """Return the patch site of this slot, made now if there is none yet, or a sentence saying why there cannot be one."""
        present = self._present(slot, raw)
        if present is not None:
            return present
        wrapper = wrapper_in(raw) if slot.existed else None
        if wrapper is not None and not wrapper._self_patch_site.retired:
            return "%s is patched by another registry." % str(target)
        raw = without_us(raw) if wrapper is not None else raw
        original = raw.__func__ if type(raw) in (classmethod, staticmethod) else raw
        if is_class(original) or not callable(original):
            return "%s is not a function but %s." % (target, describe(original))
        return self._make(PatchSite(target, slot, raw, original, slot.in_class and type(raw) is not staticmethod))

    def _present(self, slot: Slot, raw: Any) -> Optional[PatchSite]:
        for patch_site in self._patch_sites:
            if (slot.existed and raw is patch_site.placed) or (self._same(patch_site.slot, slot) and holds(patch_site)):
                return patch_site
        return None

    def _make(self, patch_site: PatchSite) -> PatchSite:
        patch_site.wrapper = Wrapper(patch_site)
        kind = type(patch_site.raw)
        patch_site.placed = kind(patch_site.wrapper) if kind in (classmethod, staticmethod) else patch_site.wrapper
        # First: undo then reaches it even if a signal handler of the job's interrupts the write.
        self._patch_sites.append(patch_site)
        self._unaliased.append(patch_site)
        try:
            patch_site.slot.write(patch_site.placed)
        except ours(Exception):
            self._patch_sites.pop()
            self._unaliased.pop()
            raise
        return patch_site

    @staticmethod
    def _replace_aliases(patch_sites: List[PatchSite]) -> None:
        """Replace the other names of what was wrapped; an inherited original belongs to another class and keeps its names."""
        wanted = {id(patch_site.original): patch_site for patch_site in patch_sites if patch_site.slot.existed}
        for alias, original in holders(wanted) if wanted else ():
            patch_site = wanted[id(original)]
            alias.write(patch_site.wrapper)
            patch_site.aliases.append(alias)
