"""The table of ranks: equal ranks share a row, so that a thousand ranks are as readable as eight."""

import re
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.diagnose.words import spans
from ddp_probe.report.standing import Standing

FEW = 8  # Up to this many ranks, devices are shown with their own numbers.
ROWS = 24  # Maximum rows; those of guilty ranks are kept first.
NOTE = "N stands for the rank's own LOCAL_RANK."
_Key = Tuple[str, ...]
_NUMBER = re.compile(r"\d+")


class Row(NamedTuple):
    """Ranks in the same state."""

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
    """The rows, and what was omitted."""

    rows: List[Row]
    left_out: int  # Number of omitted rows.
    relative: bool  # Some numbers are shown as N.


def table(standings: Sequence[Standing], guilty: Collection[int], with_last: bool = True) -> Table:
    """Merge ranks in the same state; with many ranks, also those that differ only in using their own card."""
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
    """Return each last event with its ranks, the most common one first."""
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
    """Return ranks as ranges; if there are too many ranges, the first two, the last, and the number of ranks."""
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
    """Replace each rank's own local rank by N, in each column where most ranks have it."""
    columns = [column for column in ("devices", "device_ids", "card") if _is_rule(standings, column)]
    return [_with_n(standing, columns) for standing in standings]


def _with_n(standing: Standing, columns: Sequence[str]) -> Standing:
    values: Dict[str, Any] = {column: _relative(getattr(standing, column), standing.local_rank) for column in columns}
    return standing._replace(**values)


def _is_rule(standings: Sequence[Standing], column: str) -> bool:
    """Return whether most ranks use their own local rank here. Local rank 0 does not count: a fixed number is often 0 too."""
    numbered = [standing for standing in standings if standing.local_rank and _NUMBER.search(getattr(standing, column))]
    own = [standing for standing in numbered if _relative(getattr(standing, column), standing.local_rank) != getattr(standing, column)]
    return bool(numbered) and 2 * len(own) > len(numbered)


def _relative(text: str, local_rank: Optional[int]) -> str:
    """Return `gcu:3`, `[3]` and `3` on local rank 3 with N for 3; the part in brackets with the visible cards is unchanged."""
    head, sep, tail = text.partition(" (")
    return _NUMBER.sub(lambda found: "N" if local_rank is not None and int(found.group()) == local_rank else found.group(), head) + sep + tail
