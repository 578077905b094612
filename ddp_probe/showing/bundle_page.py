"""The listing of a bundle: what it holds, what was masked, what was left out."""

import os
from typing import Dict, Iterator, List, Sequence

from ddp_probe.reading.bundled import HeldFile, Manifest
from ddp_probe.showing import safe
from ddp_probe.showing.layout import StyledLine, item, sentence
from ddp_probe.showing.paint import STRONG, WARN

_NAMED = 3  # How many files are named if there are more than two more.
_SHOWN = 12  # Rows of one part of the listing; --json has all of them.


def lines(manifest: Manifest, kinds: Sequence["tuple[str, str, str]"], width: int) -> Iterator[StyledLine]:
    """Yield the listing; each kind is its name, and what one and several files of it are called."""
    yield from sentence("run %s: what the bundle holds" % (manifest.run or "without a name"), width, style=STRONG)
    for kind, single, many in kinds:
        files = [file for file in manifest.files if file.kind == kind]
        if files:
            yield from _kind(files, single if len(files) == 1 else many, width)
    yield StyledLine("")
    yield from _masked(manifest, width)
    yield from _left_out(manifest, width)


def _kind(files: List[HeldFile], name: str, width: int) -> Iterator[StyledLine]:
    yield from item("%d %s, %s: %s" % (len(files), name, size(sum(file.bytes for file in files)), _some([file.path for file in files])), width)


def _masked(manifest: Manifest, width: int) -> Iterator[StyledLine]:
    yield StyledLine("what was masked", STRONG)
    for counts, when in ((manifest.masked, "for this bundle"), (manifest.already_masked, "by the probe, when it was written")):
        if not counts:
            yield from item("nothing %s" % when, width)
        for place, count in _most(counts):
            yield from item("%s in %s, %s" % ("1 value" if count == 1 else "%d values" % count, place, when), width)
        if len(counts) > _SHOWN:
            yield from item("more in %d other places, %s; --json lists them" % (len(counts) - _SHOWN, when), width)
    yield from item("names of users, hosts and folders are not masked", width)


def _left_out(manifest: Manifest, width: int) -> Iterator[StyledLine]:
    cut = [file for file in manifest.files if file.bytes_left_out]
    if not (cut or manifest.left_out or manifest.unreadable):
        return
    yield StyledLine("")
    yield StyledLine("what is not in it", WARN)
    for kind in dict.fromkeys(file.kind for file in cut):
        files = [file for file in cut if file.kind == kind]
        what = "%s of %s: lines into which the report does not look" if kind == "source" else "%s from the middle of %s"
        yield from item(what % (size(sum(file.bytes_left_out for file in files)), _some([file.path for file in files])), width)
    reasons: Dict[str, List[str]] = {}
    for path, why in (*manifest.left_out.items(), *manifest.unreadable.items()):
        reasons.setdefault(why, []).append(path)
    for why, paths in list(reasons.items())[:_SHOWN]:
        yield from item("%s: %s" % (_some(paths), why), width)
    if len(reasons) > _SHOWN:
        yield from item("%d more files; --json lists them" % sum(map(len, list(reasons.values())[_SHOWN:])), width)


def _some(paths: List[str]) -> str:
    names = [os.path.basename(path) for path in paths]
    count = len(names) if len(names) <= _NAMED + 2 else _NAMED
    return ", ".join(safe.line(each, 80) for each in names[:count]) + (" and %d more" % (len(names) - count) if len(names) > count else "")


def _most(counts: Dict[str, int]) -> List["tuple[str, int]"]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return "%.1f %s" % (count / factor, unit)
    return "%d bytes" % count
