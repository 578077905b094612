"""The table of ranks: equal ranks share a row, so that a thousand ranks are as readable as eight; and its lines for a width."""

import functools
import re
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.showing import safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, columns, wrap
from ddp_probe.showing.paint import BAD, QUIET, STRONG
from ddp_probe.showing.rank_state import RankState
from ddp_probe.wording.text import Text
from ddp_probe.wording.text import say as text_of
from ddp_probe.wording.values import Ranks
from ddp_probe.wording.words import spans

FEW = 8  # Up to this many ranks, devices are shown with their real numbers.
ROWS = 24  # Maximum rows; those of guilty ranks are kept first.
NOTE = "N stands for the rank's own LOCAL_RANK."
_Key = Tuple[str, ...]
_NUMBER = re.compile(r"\d+")


class StateRow(NamedTuple):
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
    memory: str = ""
    waited: str = ""
    near: str = ""


class Table(NamedTuple):
    """The rows, and what was omitted."""

    rows: List[StateRow]
    left_out: int  # Number of omitted rows.
    relative: bool  # Some numbers are shown as N.


def rows_of(rank_states: Sequence[RankState], guilty: Collection[int], with_last: bool = True) -> Table:
    """Merge ranks in the same state; with many ranks, also those that differ only in which card they use."""
    if not with_last:
        rank_states = [state._replace(last="", site="") for state in rank_states]
    rows = _fold(rank_states, guilty)
    relative = False
    if len(rank_states) > FEW:
        numbered = _with_relative_numbers(rank_states)
        relative = any(any("N" in cell for cell in (state.devices, state.device_ids, state.card)) for state in numbered)
        rows = _fold(numbered, guilty)
    kept = sorted(rows, key=lambda row: (not row.guilty, -len(row.ranks)))[:ROWS]
    chosen = {id(row) for row in kept}
    return Table([row for row in rows if id(row) in chosen], len(rows) - len(kept), relative)


def last_events(rank_states: Sequence[RankState]) -> Dict[str, List[int]]:
    """Return each last event with its ranks, the most common one first."""
    ranks_of: Dict[str, List[int]] = {}
    for state in rank_states:
        if state.last:
            ranks = ranks_of.setdefault(event_of(state), [])
            ranks += [] if state.rank is None else [state.rank]
    return dict(sorted(ranks_of.items(), key=lambda item: -len(item[1])))


def event_of(state: Union[RankState, StateRow]) -> Text:
    """Return what ranks did last, and where."""
    return text_of("{event}{where}", event=state.last, where=text_of(" at {place}", place=state.site) if state.site else "")


def who(ranks: Sequence[int]) -> Text:
    """Return ranks as a sentence's subject."""
    if not ranks:
        return text_of("a process")
    return text_of("rank {ranks}" if len(ranks) == 1 else "ranks {ranks}", ranks=few(ranks, 8))


def few(ranks: Sequence[int], limit: int = 3) -> str:
    """Return ranks as ranges; if there are too many ranges, the first two, the last, and the number of ranks."""
    if not ranks:
        return "-"
    parts = Ranks(ranks).spans()
    if len(parts) <= limit:
        return spans(ranks, len(ranks))
    return "%s, %s .. %s (%d)" % (parts[0], parts[1], parts[-1], len(ranks))


def _fold(rank_states: Sequence[RankState], guilty: Collection[int]) -> List[StateRow]:
    groups: Dict[_Key, List[RankState]] = {}
    for state in rank_states:
        key = (*state.cells, str(state.rank in guilty))
        groups.setdefault(key, []).append(state)
    return [_row(alike, alike[0].rank in guilty) for alike in groups.values()]


def _row(alike: Sequence[RankState], guilty: bool) -> StateRow:
    ranks = [state.rank for state in alike if state.rank is not None]
    return StateRow(ranks, guilty, hosts([state.host for state in alike]), *alike[0].cells)


def hosts(names: Sequence[str]) -> str:
    """Return hosts for a cell or a line: up to three by name, else how many."""
    different = sorted({name for name in names if name}, key=_natural)
    return ", ".join(different) if len(different) <= 3 else "%d hosts" % len(different)


def _natural(name: str) -> List[Tuple[int, str]]:
    """Sort node10 after node9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _with_relative_numbers(rank_states: Sequence[RankState]) -> List[RankState]:
    """Replace a rank's local rank by N in each column where most ranks have it."""
    columns = [column for column in ("devices", "device_ids", "card") if _is_rule(rank_states, column)]
    return [_with_n(state, columns) for state in rank_states]


def _with_n(state: RankState, columns: Sequence[str]) -> RankState:
    values: Dict[str, Any] = {column: _relative(getattr(state, column), state.local_rank) for column in columns}
    return state._replace(**values)


def _is_rule(rank_states: Sequence[RankState], column: str) -> bool:
    """Return whether most ranks use their local rank here. Local rank 0 does not count: a fixed number is often 0 too."""
    numbered = [state for state in rank_states if state.local_rank and _NUMBER.search(getattr(state, column))]
    relative = [state for state in numbered if _relative(getattr(state, column), state.local_rank) != getattr(state, column)]
    return bool(numbered) and 2 * len(relative) > len(numbered)


@functools.lru_cache(maxsize=1 << 12)  # ten thousand ranks have few different cells
def _relative(text: str, local_rank: Optional[int]) -> str:
    """Return `gcu:3`, `[3]` and `3` on local rank 3 with N for 3; the part in brackets with the visible cards is unchanged."""
    head, sep, tail = text.partition(" (")
    return _NUMBER.sub(lambda match: "N" if local_rank is not None and int(match.group()) == local_rank else match.group(), head) + sep + tail


# Prints the table of ranks for a width: a column that does not fit goes below the table, and a table that does not fit becomes a list.

_Column = Tuple[str, List[str]]


def lines(rank_states: Sequence[RankState], guilty: Collection[int], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the table in the widest form that fits."""
    table = rows_of(rank_states, guilty)
    parts = [*_columns(table, say), (say("last event"), [_last(row, say) for row in table.rows])]
    if _fits(parts, table, width):
        yield from _table(parts, table)
        yield from _notes(table, say)
        return
    table = rows_of(rank_states, guilty, with_last=False)
    parts = _columns(table, say)
    without_host = [part for part in parts if part[0] != say("host")]
    fitting = next((chosen for chosen in (parts, without_host) if _fits(chosen, table, width)), None)
    yield from _list(parts, table, width) if fitting is None else _table(fitting, table)
    yield from _notes(table, say)
    yield from _last_events(rank_states, width, say)


def _notes(table: Table, say: Language) -> Iterator[StyledLine]:
    if table.relative:
        yield StyledLine(say(NOTE), QUIET)
    if table.left_out:
        yield StyledLine(say("%d more rows are omitted; --json has every rank.") % table.left_out, QUIET)


def _columns(table: Table, say: Language) -> List[_Column]:
    """Return the columns with content; the host only if there are several."""
    rows = table.rows
    hosts = [row.host for row in rows] if len({row.host for row in rows if row.host}) > 1 else []
    columns = [
        ("ranks", [few(row.ranks) for row in rows]),
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
    return [(say(name), [cell or "-" for cell in cells]) for name, cells in columns if any(cells)]


def _last(row: StateRow, say: Language) -> str:
    return say.text(event_of(row)) if row.last else "-"


def _texts(parts: Sequence[_Column]) -> List[str]:
    names, cells = zip(*parts)
    return columns([names, *zip(*cells)])


def _fits(parts: Sequence[_Column], table: Table, width: int) -> bool:
    return max(map(safe.width, _texts(parts))) + (2 if _mixed(table) else 0) <= width


def _mixed(table: Table) -> bool:
    """Return whether only some rows are of guilty ranks; only then are those highlighted."""
    return len({row.guilty for row in table.rows}) > 1


def _marks(table: Table) -> List[str]:
    return [("> " if row.guilty else "  ") if _mixed(table) else "" for row in table.rows]


def _table(parts: Sequence[_Column], table: Table) -> Iterator[StyledLine]:
    head, *texts = _texts(parts)
    yield StyledLine(("  " if _mixed(table) else "") + head, STRONG)
    for mark, text in zip(_marks(table), texts):
        yield StyledLine(mark + text, BAD if mark == "> " else "")


def _list(parts: Sequence[_Column], table: Table, width: int) -> Iterator[StyledLine]:
    names, cells = zip(*parts)
    for mark, row in zip(_marks(table), zip(*cells)):
        text = "; ".join("%s %s" % pair for pair in zip(names, row))
        for line in wrap(text, width, mark, "    "):
            yield StyledLine(line, BAD if mark == "> " else "")


def _event_line(event: str, ranks: List[int], events: int, say: Language) -> str:
    """Return an event; with its ranks, unless it is that of all."""
    return say.text(event) if events == 1 else say.text(who(ranks)) + say(": ") + say.text(event)


def _last_events(rank_states: Sequence[RankState], width: int, say: Language) -> Iterator[StyledLine]:
    events = last_events(rank_states)
    if events:
        yield StyledLine(say("last event"), STRONG)
    for text, those in list(events.items())[:ROWS]:
        for line in wrap(_event_line(text, those, len(events), say), width, "  ", "    "):
            yield StyledLine(line)
    if len(events) > ROWS:
        yield StyledLine("  " + say("%d more; --json has every rank.") % (len(events) - ROWS), QUIET)
