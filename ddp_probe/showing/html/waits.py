"""Ranks x lines: how long each rank was in the collectives of each line, and which part of a step it waits for the slowest."""

from typing import Dict, List, NamedTuple, Sequence

from ddp_probe.judging import late_ranks
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.late_ranks import WaitSite, WaitTime
from ddp_probe.showing.html.words import WORDS

_LINES = 8  # Columns, those with most time.
_RANKS = 32  # Rows.
_SHADES = 4


class WaitCell(NamedTuple):
    """One rank at one line; `shade` is from 0 to 4, by the longest of the column."""

    text: str
    shade: int
    title: str


class WaitRow(NamedTuple):
    """One rank."""

    rank: int
    host: str
    late: bool
    cells: List[WaitCell]


class WaitMatrix(NamedTuple):
    """The rows and their columns."""

    columns: List[WaitSite]
    steps: bool  # The first cell of a row is the part of a step.
    rows: List[WaitRow]
    hosts: bool
    left_out: int
    lines_left_out: int


def part(diagnosis: Diagnosis) -> WaitMatrix:
    """Return the matrix; it has no rows if less than two ranks have waited anywhere."""
    run = diagnosis.run
    sites, shares = late_ranks.sites(run), late_ranks.shares(run)
    found, columns = late_ranks.late(run), list(sites)[:_LINES]
    slow = found.ranks if found is not None else []
    ranks = sorted({*shares, *(rank for line in columns for rank in sites[line])})
    if len(ranks) < 2:
        return WaitMatrix([], False, [], False, 0, 0)
    inside = {rank: sum(sites[line][rank].inside for line in columns if rank in sites[line]) for rank in ranks}
    chosen = sorted(ranks, key=lambda rank: (rank not in slow, shares.get(rank, 0.0), inside[rank], rank))[:_RANKS]
    most = [max(time.inside for time in sites[line].values()) for line in columns]
    rows = [
        WaitRow(rank, run.ranks[rank].host, rank in slow, _cells(rank, shares, [sites[line] for line in columns], most)) for rank in sorted(chosen)
    ]
    return WaitMatrix(columns, bool(shares), rows, len({row.host for row in rows}) > 1, len(ranks) - len(rows), len(sites) - len(columns))


def _cells(rank: int, shares: Dict[int, float], lines: Sequence[Dict[int, WaitTime]], most: Sequence[float]) -> List[WaitCell]:
    found = []
    if shares:
        share = shares.get(rank)
        found.append(WaitCell("" if share is None else "%d %%" % round(100 * share), _shade(share or 0.0, max(shares.values())), ""))
    for times, longest in zip(lines, most):
        one = times.get(rank)
        title = "" if one is None else WORDS["waits_title"] % (one.calls, one.longest)
        found.append(WaitCell("" if one is None else "%.3g s" % one.inside, 0 if one is None else _shade(one.inside, longest), title))
    return found


def _shade(value: float, most: float) -> int:
    return round(_SHADES * value / most) if most > 0 else 0
