"""The census of sys.modules: who else holds an original, and who holds a wrapper of ours."""

import functools
import gc
import sys
import types
from typing import Any, Dict, Iterator, List, Set, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.call import Parameters
from ddp_probe.traced.patching.certificate import Entry
from ddp_probe.traced.patching.patch import PatchSite
from ddp_probe.traced.patching.slot import Slot, describe, namespace
from ddp_probe.traced.patching.wrapped_chain import adopts, is_proxy, splice
from ddp_probe.traced.patching.wrapper import Bound, Wrapper

_TRIES = 5


def snapshot(mapping: Dict[Any, Any]) -> List[Tuple[Any, Any]]:
    """Return the items of a dictionary that another thread may be changing."""
    for _ in range(_TRIES):
        try:
            return list(mapping.items())
        except ours(RuntimeError):  # It changed size while it was read.
            continue
    return []


def spaces() -> Iterator[Tuple[str, Any, Dict[str, Any]]]:
    """Yield name, module and dictionary, each module once, without lazy modules and whatever else is in sys.modules."""
    seen: Set[int] = set()
    for name, module in snapshot(sys.modules):
        space = namespace(module)
        if space is not None and id(space) not in seen:
            seen.add(id(space))
            yield str(name), module, space


def holders(wanted: Dict[int, Any]) -> Iterator[Tuple[Slot, Any]]:
    """Yield every module attribute that is one of these objects, given by id, in one pass over all modules."""
    for name, module, space in spaces():
        for attribute, value in _found(space, wanted):
            yield Slot(module, attribute, True, "%s.%s" % (name, attribute)), value


def _found(space: Dict[str, Any], wanted: Dict[int, Any]) -> List[Tuple[str, Any]]:
    for _ in range(_TRIES):
        try:
            return [(name, value) for name, value in space.items() if id(value) in wanted]
        except ours(RuntimeError):  # It changed size while it was read.
            continue
    return []


# Asks the garbage collector who still holds a retired wrapper, once, during undo.

_MOST = 50
_LEVELS = 3
_BINDINGS = (types.MethodType, Bound, classmethod, staticmethod)
_CONTAINERS = (dict, list, tuple, set, frozenset, types.CellType, functools.partial) + _BINDINGS
_SKIPPED = (types.FrameType, PatchSite, Parameters, Wrapper)
_WORDS: Dict[Any, str] = {kind: "a %s" % kind.__name__ for kind in (dict, list, tuple, set, frozenset)}
_WORDS.update({types.CellType: "a closure", types.MethodType: "a bound method"})


class _Trail:
    """The holder of a wrapper, the holder of that, and so on up to something with a name."""

    __slots__ = ("patch_site", "nodes")

    def __init__(self, patch_site: PatchSite, first: Any) -> None:
        self.patch_site = patch_site
        self.nodes: List[Any] = [first]

    def still_holds(self) -> bool:
        """Tell whether the wrapper is still there after others have been spliced."""
        first = self.nodes[0]
        held = gc.get_referents(first)
        return any(thing is self.patch_site.wrapper for thing in held)

    def described(self) -> str:
        """Say what holds the wrapper, and what holds that."""
        first, last = self.nodes[0], self.nodes[-1]
        words = _WORDS.get(type(first)) or describe(first)
        return words if first is last or type(last) in _CONTAINERS else "%s in %s" % (words, describe(last))

    def temporary(self) -> bool:
        """Tell whether this is a bound method that nobody keeps: one of a call that is running, or our own."""
        return len(self.nodes) == 1 and type(self.nodes[0]) in _BINDINGS


def held_elsewhere(patch_sites: List[PatchSite]) -> List[Entry]:
    """Splice our wrapper out of whatever wraps it openly, and name all other holders."""
    trails = _trails(patch_sites)
    for _ in range(_LEVELS):
        _climb(trails)
    entries = list(_spliced(trails))
    rest = [trail for trail in trails if not trail.temporary() and trail.still_holds()]
    return entries + [_entry(trail, "unreachable", False, "It keeps a switched-off wrapper, which calls the original.") for trail in rest]


def keeping_originals(patch_sites: List[PatchSite]) -> Dict[str, List[str]]:
    """Name who holds an original under no name that was replaced, by target: a late patch does not see the calls made through them."""
    by_id = {id(patch_site.original): patch_site for patch_site in patch_sites}
    wrappers = {id(patch_site.wrapper) for patch_site in patch_sites}
    trails: List[_Trail] = []
    for holder in _referrers([patch_site.original for patch_site in patch_sites]):
        if type(holder) not in _SKIPPED and id(holder) not in wrappers:
            trails += [_Trail(by_id[id(held)], holder) for held in gc.get_referents(holder) if id(held) in by_id]
    trails = trails[:_MOST]
    for _ in range(_LEVELS):
        _climb(trails)
    by_target: Dict[str, List[str]] = {}
    for trail in trails:
        if not trail.temporary():
            by_target.setdefault(str(trail.patch_site.target), []).append(trail.described())
    return by_target


def _entry(trail: _Trail, kind: str, restored: bool, why: str) -> Entry:
    return Entry(trail.patch_site.target, trail.described(), kind, restored, why)


def _trails(patch_sites: List[PatchSite]) -> List[_Trail]:
    by_id = {id(patch_site.wrapper): patch_site for patch_site in patch_sites}
    trails: List[_Trail] = []
    holders = _referrers([patch_site.wrapper for patch_site in patch_sites]) + _proxies()
    direct = {id(holder): holder for holder in holders if type(holder) not in _SKIPPED}
    for holder in direct.values():
        inside = {id(held) for held in gc.get_referents(holder)}
        trails += [_Trail(patch_site, holder) for key, patch_site in by_id.items() if key in inside]
    return trails[:_MOST]


def _referrers(things: List[Any]) -> List[Any]:
    """Ask the collector, and leave out the arguments of this very question, which Python 3.13 finds too."""
    mark: List[Any] = []
    holders = gc.get_referrers(mark, *things)
    return [holder for holder in holders if holder is not things and not _begins_with(mark, holder)]


def _begins_with(mark: List[Any], holder: Any) -> bool:
    return type(holder) is tuple and bool(holder) and holder[0] is mark


def _proxies() -> List[Any]:
    """Return every proxy of wrapt: up to wrapt 2.0 the collector cannot see what its function wrappers hold."""
    kinds: Dict[Any, bool] = {}
    proxies = []
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            kinds[kind] = is_proxy(thing)
        if kinds[kind]:
            proxies.append(thing)
    return proxies


def _climb(trails: List[_Trail]) -> None:
    """Extend every trail that ends in a container by the holder of that container, all of them in one pass."""
    going = [trail for trail in trails if type(trail.nodes[-1]) in _CONTAINERS]
    if not going:
        return
    tips = [trail.nodes[-1] for trail in going]
    wanted = {id(tip) for tip in tips}
    owners = _owners(tips, wanted, {id(trail.nodes) for trail in trails})
    for trail in going:
        owner = owners.get(id(trail.nodes[-1]))
        if owner is not None:
            trail.nodes.append(owner)


def _owners(tips: List[Any], wanted: Set[int], skipped: Set[int]) -> Dict[int, Any]:
    owners: Dict[int, Any] = {}
    for parent in _referrers(tips):
        if type(parent) in _SKIPPED or id(parent) in skipped:
            continue
        for child in gc.get_referents(parent):
            if id(child) in wanted:
                owners.setdefault(id(child), parent)
    return owners


def _spliced(trails: List[_Trail]) -> Iterator[Entry]:
    for trail in trails:
        for node in trail.nodes:
            if adopts(node) and splice(node):
                yield Entry(trail.patch_site.target, describe(node), "spliced", True, "It stays and calls the original.")
