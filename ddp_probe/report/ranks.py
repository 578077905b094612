"""The table of ranks: equal ranks share a row, so that a thousand of them are as readable as eight."""

import re
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.diagnose.words import spans
from ddp_probe.report.standing import Standing

FEW = 8  # Up to so many ranks each device is shown as it is called.
ROWS = 24  # At most; the guilty ranks' rows come before the others'.
NOTE = "N stands for the rank's own LOCAL_RANK."
_Key = Tuple[str, ...]
_NUMBER = re.compile(r"\d+")


class Row(NamedTuple):
    """Ranks that stand alike."""

    ranks: List[int]
    guilty: bool
    host: str
    devices: str
    device_ids: str
    card: str
    phase: str
    last: str
    site: str
    end: str


class Table(NamedTuple):
    """The rows, and what was left out of them."""

    rows: List[Row]
    left_out: int  # Rows.
    relative: bool  # Some numbers are told as N.


def table(standings: Sequence[Standing], guilty: Collection[int], with_last: bool = True) -> Table:
    """Fold what stands alike; with more ranks than a few, also what is alike but for each rank using its own card."""
    if not with_last:
        standings = [standing._replace(last="", site="") for standing in standings]
    rows = _fold(standings, guilty)
    relative = False
    if len(standings) > FEW:
        own = _own(standings)
        relative = any(any("N" in cell for cell in (each.devices, each.device_ids, each.card)) for each in own)
        rows = _fold(own, guilty)
    kept = sorted(rows, key=lambda row: (not row.guilty, -len(row.ranks)))[:ROWS]
    chosen = {id(row) for row in kept}
    return Table([row for row in rows if id(row) in chosen], len(rows) - len(kept), relative)


def last_events(standings: Sequence[Standing]) -> Dict[str, List[int]]:
    """Return each last event once, with the ranks that it is the last one of; the most common one first."""
    found: Dict[str, List[int]] = {}
    for standing in standings:
        if standing.last:
            ranks = found.setdefault(standing.last + (" at %s" % standing.site if standing.site else ""), [])
            ranks += [] if standing.rank is None else [standing.rank]
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def who(ranks: Sequence[int]) -> str:
    """Return ranks as a sentence's subject."""
    return "a process" if not ranks else ("rank " if len(ranks) == 1 else "ranks ") + few(ranks, 8)


def few(ranks: Sequence[int], limit: int = 3) -> str:
    """Return ranks with neighbours folded, and where they are scattered the first, the last and how many."""
    if not ranks:
        return "-"
    text = spans(ranks, len(ranks))
    parts = text.split(", ")
    return text if len(parts) <= limit else "%s, %s .. %s (%d)" % (parts[0], parts[1], parts[-1], len(ranks))


def _fold(standings: Sequence[Standing], guilty: Collection[int]) -> List[Row]:
    groups: Dict[_Key, List[Standing]] = {}
    for standing in standings:
        key = (*standing[3:], str(standing.rank in guilty))
        groups.setdefault(key, []).append(standing)
    return [_row(alike, alike[0].rank in guilty) for alike in groups.values()]


def _row(alike: Sequence[Standing], guilty: bool) -> Row:
    ranks = [standing.rank for standing in alike if standing.rank is not None]
    return Row(ranks, guilty, hosts([standing.host for standing in alike]), *alike[0][3:])


def hosts(names: Sequence[str]) -> str:
    """Return hosts for a cell or a line: up to three by name, else how many."""
    known = sorted({name for name in names if name}, key=_natural)
    return ", ".join(known) if len(known) <= 3 else "%d hosts" % len(known)


def _natural(name: str) -> List[Tuple[int, str]]:
    """Sort node10 after node9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _own(standings: Sequence[Standing]) -> List[Standing]:
    """Write N for a number that is the rank's own local rank, in each column in which that is the rule."""
    asked = [column for column in ("devices", "device_ids", "card") if _is_rule(standings, column)]
    return [_told_as_own(standing, asked) for standing in standings]


def _told_as_own(standing: Standing, asked: Sequence[str]) -> Standing:
    told: Dict[str, Any] = {column: _relative(getattr(standing, column), standing.local_rank) for column in asked}
    return standing._replace(**told)


def _is_rule(standings: Sequence[Standing], column: str) -> bool:
    """On local rank 0 it cannot be told from a number that is written into the job."""
    asked = [standing for standing in standings if standing.local_rank and _NUMBER.search(getattr(standing, column))]
    own = [standing for standing in asked if _relative(getattr(standing, column), standing.local_rank) != getattr(standing, column)]
    return bool(asked) and 2 * len(own) > len(asked)


def _relative(text: str, local_rank: Optional[int]) -> str:
    """`gcu:3` and `[3]` and `3` on local rank 3; the part in brackets that says what a process sees stays."""
    head, sep, tail = text.partition(" (")
    return _NUMBER.sub(lambda found: "N" if local_rank is not None and int(found.group()) == local_rank else found.group(), head) + sep + tail
