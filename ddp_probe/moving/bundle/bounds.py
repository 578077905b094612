"""Keeps a bundle below its size: files are cut in their middle or left out, the largest first, and each time it is said."""

import os
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ddp_probe.moving.bundle import contents, stage
from ddp_probe.moving.bundle.stage import Staged
from ddp_probe.reading import bundled

_HEADER = 160  # Compressed bytes of what an archive adds to a file, about.
_PLAIN_HEADER = 2560  # The same without compression: two headers, and the filling of the last block.
_FEWEST = 1024  # Bytes to which a file may be cut; below that it is left out.
_SPARED = (contents.OWN, contents.SOURCE, contents.LOG, contents.TEXT)  # Left out last.
UNPACKED = bundled.MOST_BYTES * 9 // 10


class Fitted(NamedTuple):
    """The files that stay, and why others do not."""

    files: List[Staged]
    left_out: Dict[str, str]


def fit(root: str, files: Sequence[Staged], most: int) -> Fitted:
    """Cut and remove files until all of them together take at most this many bytes, compressed; and few enough without compression."""
    found = Fitted(list(files), {})
    for limit, packed in ((most, True), (UNPACKED, False)):
        if sum(_cost(one, packed) for one in found.files) > limit:
            found = _fit(root, found, limit, packed)
    return found


def _cost(one: Staged, packed: bool) -> int:
    return one.packed + _HEADER if packed else one.size + _PLAIN_HEADER


def _fit(root: str, files: Fitted, most: int, packed: bool) -> Fitted:
    kept, left_out = _whole(root, files, most, packed)
    fixed = sum(_cost(one, packed) for one in kept if not _cuttable(one))
    level = _level([_cost(one, packed) for one in kept if _cuttable(one)], most - fixed)
    found: List[Staged] = []
    for one in kept:
        cost = _cost(one, packed)
        if not _cuttable(one) or cost <= level:
            found.append(one)
            continue
        size = one.size * max(level - (cost - (one.packed if packed else one.size)), 0) // max(one.packed if packed else one.size, 1)
        if size < _FEWEST:
            left_out[one.place] = _remove(root, one, most, packed)
        else:
            found.append(_shortened(root, one, size))
    return Fitted(found, left_out)


def _cuttable(one: Staged) -> bool:
    return contents.BY_NAME[one.kind].cut


def _whole(root: str, files: Fitted, most: int, packed: bool) -> Tuple[List[Staged], Dict[str, str]]:
    """Leave out files that cannot be cut until the others of them take at most half of the room."""
    kept, left_out = list(files.files), dict(files.left_out)
    total = sum(_cost(one, packed) for one in kept if not _cuttable(one))
    chosen = [one for one in kept if not _cuttable(one) and one.kind not in _SPARED]
    for one in sorted(chosen, key=lambda one: -_cost(one, packed)):
        if total <= most // 2:
            break
        kept.remove(one)
        total -= _cost(one, packed)
        left_out[one.place] = _remove(root, one, most, packed)
    return kept, left_out


def _remove(root: str, one: Staged, most: int, packed: bool) -> str:
    os.unlink(os.path.join(root, *one.place.split("/")))
    return "There is no room for it: the bundle has %d bytes%s at most." % (most, "" if packed else ", unpacked,")


def _level(costs: List[int], room: int) -> int:
    """Return the cost that no file may exceed, so that all of them find room."""
    left = max(room, 0)
    for number, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - number)
        if cost > share:
            return share
        left -= cost
    return max(costs, default=0)


def _shortened(root: str, one: Staged, size: int) -> Staged:
    path = os.path.join(root, *one.place.split("/"))
    changed = os.stat(path).st_mtime
    with open(path, "rb") as file:
        data = file.read()
    kept = stage.cut_to(data, size)
    return stage.write(root, one.place, kept, one.kind, changed)._replace(cut=one.cut + len(data) - len(kept))
