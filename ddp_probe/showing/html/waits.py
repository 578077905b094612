"""Ranks x lines: how long each rank was in the collectives of each line, and which part of a step it waits for the slowest."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging import late_ranks
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.late_ranks import WaitSite, WaitTime
from ddp_probe.showing import ranks_table
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.language import ENGLISH, Language

_LINES = 8  # Columns, those with most time.
_ROWS = 32
_SHADES = 4
_ALIKE = 1.2  # Ranks of which none waits this many times as long as another do not differ.
_APART = 0.05  # Nor do those that wait for parts of a step so close to each other.
_Times = Dict[int, WaitTime]


class WaitCell(NamedTuple):
    """The time that ranks spent at one line; `shade` is from 0 to 4, relative to the longest of the column."""

    text: str
    shade: int
    title: str


class WaitRow(NamedTuple):
    """Ranks that have waited equally long."""

    who: str
    host: str
    late: bool
    cells: List[WaitCell]


class WaitMatrix(NamedTuple):
    """The rows and their columns."""

    columns: List[WaitSite]
    steps: bool  # The first cell of a row is the part of a step.
    rows: List[WaitRow]
    hosts: bool
    left_out: int  # Number of omitted ranks.
    lines_left_out: int


def part(diagnosis: Diagnosis, say: Language = ENGLISH) -> WaitMatrix:
    """Return the matrix; it has no rows if fewer than two ranks have waited anywhere."""
    run = diagnosis.run
    lines, shares = _lines(late_ranks.sites(run)), late_ranks.shares(run)
    late, columns = late_ranks.late(run), list(lines)[:_LINES]
    slow = late.ranks if late is not None else []
    ranks = sorted({*shares, *(rank for line in columns for rank in lines[line])})
    if len(ranks) < 2:
        return WaitMatrix([], False, [], False, 0, 0)
    inside = {rank: sum(lines[line][rank].inside for line in columns if rank in lines[line]) for rank in ranks}
    alike: Dict[Tuple[bool, Tuple[str, ...]], List[int]] = {}
    cells = dict(zip(ranks, zip(*_columns(ranks, shares, [lines[line] for line in columns], say))))
    for rank in ranks:
        alike.setdefault((rank in slow, tuple(cell.text for cell in cells[rank])), []).append(rank)
    first = sorted(alike.values(), key=lambda row: (row[0] not in slow, shares.get(row[0], 0.0), inside[row[0]], row[0]))[:_ROWS]
    rows = [
        WaitRow(ranks_table.few(row, 8), ranks_table.hosts([run.ranks[rank].host for rank in row]), row[0] in slow, list(cells[row[0]]))
        for row in sorted(first)
    ]
    hosts = len({run.ranks[rank].host for rank in ranks}) > 1
    return WaitMatrix(columns, bool(shares), rows, hosts, len(ranks) - sum(map(len, first)), len(lines) - len(columns))


def _lines(sites: Dict[WaitSite, _Times]) -> Dict[WaitSite, _Times]:
    """Return the times of each line, that with most time first: groups of ranks that call the same line share a column."""
    times_of: Dict[WaitSite, _Times] = {}
    for site, times in sites.items():
        line = times_of.setdefault(site._replace(group=""), {})
        for rank, time in times.items():
            sum_before = line.get(rank, WaitTime(0, 0.0, 0.0))
            longest = max(sum_before.longest, time.longest)
            line[rank] = WaitTime(sum_before.calls + time.calls, sum_before.inside + time.inside, longest)
    return dict(sorted(times_of.items(), key=lambda item: -sum(time.inside for time in item[1].values())))


def _columns(ranks: Sequence[int], shares: Dict[int, float], lines: Sequence[_Times], say: Language) -> Iterator[List[WaitCell]]:
    """Yield the cells of each column, rank by rank."""
    if shares:
        yield _column([shares.get(rank) for rank in ranks], ["%d %%" % round(100 * shares.get(rank, 0.0)) for rank in ranks], apart=_APART)
    digits = 3 if len(ranks) <= ranks_table.FEW else 2
    for times in lines:
        waits = [times.get(rank) for rank in ranks]
        yield _column(
            [time.inside if time else None for time in waits],
            ["%.*g s" % (digits, time.inside) if time else "" for time in waits],
            [say(WORDS["waits_title"]) % (time.calls, time.longest) if time else "" for time in waits],
        )


def _column(values: Sequence[Optional[float]], texts: Sequence[str], titles: Sequence[str] = (), apart: float = 0.0) -> List[WaitCell]:
    numbers = [value for value in values if value is not None]
    least, most = min(numbers), max(numbers)
    differ = most > _ALIKE * least and most - least > apart
    return [
        WaitCell("", 0, "") if value is None else WaitCell(text, round(_SHADES * value / most) if differ else 0, title)
        for value, text, title in zip(values, texts, titles or [""] * len(texts))
    ]
