"""Prints the table of ranks for a width: a column that does not fit goes below the table, and a table that does not fit becomes a list."""

from typing import Collection, Iterator, List, Sequence, Tuple

from ddp_probe.showing import ranks, safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, columns, wrap
from ddp_probe.showing.paint import BAD, QUIET, STRONG
from ddp_probe.showing.rank_state import RankState

_Column = Tuple[str, List[str]]


def lines(rank_states: Sequence[RankState], guilty: Collection[int], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the table in the widest form that fits."""
    table = ranks.table(rank_states, guilty)
    parts = [*_columns(table, say), (say("last event"), [_last(row) for row in table.rows])]
    if _fits(parts, table, width):
        yield from _table(parts, table)
        yield from _notes(table, say)
        return
    table = ranks.table(rank_states, guilty, with_last=False)
    parts = _columns(table, say)
    without_host = [part for part in parts if part[0] != say("host")]
    fitting = next((chosen for chosen in (parts, without_host) if _fits(chosen, table, width)), None)
    yield from _list(parts, table, width) if fitting is None else _table(fitting, table)
    yield from _notes(table, say)
    yield from _last_events(rank_states, width, say)


def _notes(table: ranks.Table, say: Language) -> Iterator[StyledLine]:
    if table.relative:
        yield StyledLine(say(ranks.NOTE), QUIET)
    if table.left_out:
        yield StyledLine(say("%d more rows are omitted; --json has every rank.") % table.left_out, QUIET)


def _columns(table: ranks.Table, say: Language) -> List[_Column]:
    """Return the columns with content; the host only if there are several."""
    rows = table.rows
    hosts = [row.host for row in rows] if len({row.host for row in rows if row.host}) > 1 else []
    made = [
        ("ranks", [ranks.few(row.ranks) for row in rows]),
        ("host", hosts),
        ("parameters", [row.devices for row in rows]),
        ("device_ids", [row.device_ids for row in rows]),
        ("card", [row.card for row in rows]),
        ("memory peak", [row.memory for row in rows]),
        ("nearly full", [row.near for row in rows]),
        ("waited", [row.waited for row in rows]),
        ("phase", [say.state(row.phase) for row in rows]),
        ("end", [say.state(row.end) for row in rows]),
    ]
    return [(say(name), [cell or "-" for cell in cells]) for name, cells in made if any(cells)]


def _last(row: ranks.StateRow) -> str:
    return row.last + (" at %s" % row.site if row.site else "") or "-"


def _texts(parts: Sequence[_Column]) -> List[str]:
    names, cells = zip(*parts)
    return columns([names, *zip(*cells)])


def _fits(parts: Sequence[_Column], table: ranks.Table, width: int) -> bool:
    return max(map(safe.width, _texts(parts))) + (2 if _mixed(table) else 0) <= width


def _mixed(table: ranks.Table) -> bool:
    """Return whether only some rows are of guilty ranks; only then are those highlighted."""
    return len({row.guilty for row in table.rows}) > 1


def _marks(table: ranks.Table) -> List[str]:
    return [("> " if row.guilty else "  ") if _mixed(table) else "" for row in table.rows]


def _table(parts: Sequence[_Column], table: ranks.Table) -> Iterator[StyledLine]:
    head, *texts = _texts(parts)
    yield StyledLine(("  " if _mixed(table) else "") + head, STRONG)
    for mark, text in zip(_marks(table), texts):
        yield StyledLine(mark + text, BAD if mark == "> " else "")


def _list(parts: Sequence[_Column], table: ranks.Table, width: int) -> Iterator[StyledLine]:
    names, cells = zip(*parts)
    for mark, row in zip(_marks(table), zip(*cells)):
        text = "; ".join("%s %s" % pair for pair in zip(names, row))
        for one in wrap(text, width, mark, "    "):
            yield StyledLine(one, BAD if mark == "> " else "")


def _last_events(rank_states: Sequence[RankState], width: int, say: Language) -> Iterator[StyledLine]:
    events = ranks.last_events(rank_states)
    if events:
        yield StyledLine(say("last event"), STRONG)
    for text, those in list(events.items())[: ranks.ROWS]:
        for one in wrap(text if len(events) == 1 else say.who(ranks.who(those)) + say(": ") + text, width, "  ", "    "):
            yield StyledLine(one)
    if len(events) > ranks.ROWS:
        yield StyledLine("  " + say("%d more; --json has every rank.") % (len(events) - ranks.ROWS), QUIET)
