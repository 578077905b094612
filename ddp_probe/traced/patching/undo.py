"""Undo: retire every wrapper, put back each slot and alias, splice ours out of what others built on it, name the rest."""

from typing import Iterator, List

from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.certificate import Entry
from ddp_probe.traced.patching.holders import held_elsewhere, snapshot, spaces
from ddp_probe.traced.patching.patch import PatchSite
from ddp_probe.traced.patching.slot import MISSING, Slot, describe
from ddp_probe.traced.patching.wrapped_chain import leads_to, splice, walk
from ddp_probe.traced.patching.wrapper import without_us, wrapper_in


def restore(patch_sites: List[PatchSite]) -> List[Entry]:
    """Put everything back and return what was done, checked by identity."""
    for patch_site in patch_sites:
        patch_site.retired = True
    entries = [_restore_slot(patch_site) for patch_site in reversed(patch_sites)]
    if patch_sites:
        entries += _restore_aliases()
        for patch_site in patch_sites:
            entries += _lost_aliases(patch_site)
        entries += held_elsewhere(patch_sites)
    return entries


def _restore_slot(patch_site: PatchSite) -> Entry:
    current, target, label = patch_site.slot.read(), patch_site.target, patch_site.slot.label
    kind, expected = ("attribute", patch_site.raw) if patch_site.slot.existed else ("slot", MISSING)
    if current is patch_site.placed:
        _put(patch_site.slot, expected)
        back = patch_site.slot.read() is expected
        return Entry(target, label, kind, back, _said(kind, back))
    if current is expected:
        return Entry(target, label, kind, True, "Somebody else put it back.")
    return _taken(patch_site, patch_site.slot, current)


def _put(slot: Slot, value: object) -> None:
    try:
        if value is MISSING:
            slot.clear()
        else:
            slot.write(value)
    except ours(TypeError, AttributeError):  # The holder has become read-only; the check by identity reports it.
        pass


def _said(kind: str, back: bool) -> str:
    if not back:
        return "The slot can no longer be written; the wrapper in it is switched off."
    return "The slot that the probe made is removed." if kind == "slot" else "The original is back."


def _taken(patch_site: PatchSite, slot: Slot, current: object) -> Entry:
    """Handle a slot that somebody else has written to since."""
    if current is MISSING:
        return Entry(patch_site.target, slot.label, "overwritten", False, "Somebody removed the attribute.")
    if not leads_to(current, patch_site.wrapper):
        because = "Somebody put something else there, and it stays: %s." % describe(current)
        return Entry(patch_site.target, slot.label, "overwritten", False, because)
    for wrapper in list(walk(current)):
        splice(wrapper)
    if leads_to(current, patch_site.wrapper):
        because = "Somebody's wrapper holds a switched-off one: %s." % describe(current)
        return Entry(patch_site.target, slot.label, "unreachable", False, because)
    because = "Somebody's wrapper stays and calls the original: %s." % describe(current)
    return Entry(patch_site.target, slot.label, "spliced", True, because)


def _restore_aliases() -> Iterator[Entry]:
    """Go through every module once: aliases replaced by us, aliases made since, and wrappers left by an earlier undo."""
    for name, _, space in spaces():
        for attribute, value in snapshot(space):
            wrapper = wrapper_in(value)
            if wrapper is not None and wrapper._self_patch_site.retired:
                original = without_us(value)
                space[attribute] = original
                back = space.get(attribute) is original
                yield Entry(wrapper._self_patch_site.target, "%s.%s" % (name, attribute), "alias", back, _said("alias", back))


def _lost_aliases(patch_site: PatchSite) -> Iterator[Entry]:
    """Report aliases that somebody has written to since they were replaced."""
    for alias in patch_site.aliases:
        current = alias.read()
        if current is not patch_site.original:
            yield _taken(patch_site, alias, current)
