"""Prints one look at a running job: a row for all ranks at the same place, and a sentence for each that stands out."""

import os
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ddp_probe.judging.words import clock, size
from ddp_probe.reading.lateness import Waited
from ddp_probe.showing import ranks, safe
from ddp_probe.showing.event_line import cut
from ddp_probe.showing.layout import StyledLine, columns, wrap
from ddp_probe.showing.paint import BAD, QUIET, STRONG, WARN
from ddp_probe.showing.places import linked
from ddp_probe.showing.watch.look import Look
from ddp_probe.showing.watch.rows import Row, rows

ROWS = 24
"""Most rows of the table."""

_SENTENCES = 8
_PROBLEMS = 2
_NEARLY_A_MINUTE = 55  # Seconds; the step that has not ended yet is missing.
_Column = Tuple[str, List[str]]


def lines(look: Look, run: str, width: int, most: int = ROWS) -> Iterator[StyledLine]:
    """Yield the page: what was looked at, the table, who stands out, what could not be read."""
    made = rows(look)
    yield StyledLine(cut(_title(look, run), width), STRONG)
    yield from _table(made[:most], width)
    if len(made) > most:
        yield StyledLine("  %d more rows; --json has every rank." % (len(made) - most), QUIET)
    yield from _why(made, width)
    for path, why in list(look.problems.items())[:_PROBLEMS]:
        yield StyledLine(cut(safe.line("%s: %s" % (os.path.basename(path), why)), width), WARN)
    if len(look.problems) > _PROBLEMS:
        yield StyledLine("%d more files could not be read." % (len(look.problems) - _PROBLEMS), WARN)


def _title(look: Look, run: str) -> str:
    count = len(look.ranks)
    return safe.line("%s  %s, %d rank%s%s" % (clock(look.when), run, count, "" if count == 1 else "s", ", all ended" if look.over else ""))


def _table(made: Sequence[Row], width: int) -> Iterator[StyledLine]:
    """Yield the table; if it is too wide, the group and then the speed are left out, then lines are cut."""
    parts = _columns(made)
    for name in ("group", "waited", "steps/s"):
        if max(map(safe.width, _texts(parts)), default=0) + 2 > width:
            parts = [part for part in parts if part[0] != name]
    head, *texts = _texts(parts)
    yield StyledLine("  " + cut(head, width - 2), STRONG)
    for row, text in zip(made, texts):
        styled = StyledLine(("> " if row.why else "  ") + cut(text, width - 2), BAD if row.why else "")
        yield linked(styled, safe.line(_short(row.site)), row.site.rpartition(":")[0])


def _columns(made: Sequence[Row]) -> List[_Column]:
    groups = [row.group for row in made]
    found: List[_Column] = [
        ("ranks", [ranks.few(row.ranks) for row in made]),
        ("state", [row.state for row in made]),
        ("phase", [row.phase for row in made]),
        ("call", [row.call for row in made]),
        ("group", groups if len(set(groups)) > 1 else []),
        ("for", ["" if row.seconds is None else duration(row.seconds) for row in made]),
        ("steps/s", ["" if row.speed is None else "%.3g" % row.speed for row in made]),
        ("memory", ["" if row.memory is None else size(row.memory) for row in made]),
        ("waited", [_waited(row.waited) for row in made]),
        ("line", [_short(row.site) for row in made]),
    ]
    return [(name, [cell or "-" for cell in cells]) for name, cells in found if any(cells)]


def _waited(found: Optional[Waited]) -> str:
    """Return the share of the last minute; of how many seconds it is, if the steps that are kept reach back less far."""
    if found is None:
        return ""
    return "%d%%%s" % (round(100 * found.share), " of %s" % duration(found.seconds) if found.seconds < _NEARLY_A_MINUTE else "")


def _texts(parts: Sequence[_Column]) -> List[str]:
    names, cells = [name for name, _ in parts], [cells for _, cells in parts]
    return columns([names, *zip(*cells)])


def _why(made: Sequence[Row], width: int) -> Iterator[StyledLine]:
    """Yield why ranks stand out; equal reasons share a sentence."""
    said: Dict[str, List[int]] = {}
    for row in made:
        if row.why:
            said.setdefault(row.why, []).extend(row.ranks)
    for why, those in list(said.items())[:_SENTENCES]:
        for one in wrap(ranks.sentence(those, why), width, "", "  "):
            yield StyledLine(one, BAD)
    if len(said) > _SENTENCES:
        yield StyledLine("%d more reasons; --json has them." % (len(said) - _SENTENCES), QUIET)


def _short(site: str) -> str:
    """Return the file's name and the line; --json has the whole path."""
    return os.path.basename(site)


def duration(seconds: float) -> str:
    """Return a time in at most six characters."""
    if seconds < 10:
        return "%.1fs" % seconds
    if seconds < 120:
        return "%ds" % seconds
    minutes = int(seconds // 60)
    return "%dm%02ds" % (minutes, seconds % 60) if minutes < 60 else "%dh%02dm" % divmod(minutes, 60)
