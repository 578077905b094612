"""Shows looks at a running job: as a table, which in a terminal is renewed, and as JSON."""

import os
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.showing import ranks_table, safe
from ddp_probe.showing.event_line import cut
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, columns, wrap
from ddp_probe.showing.paint import BAD, QUIET, STRONG, WARN
from ddp_probe.showing.paths import linked
from ddp_probe.showing.watch.position import NO_LEDGER, RUNNING, Position
from ddp_probe.showing.watch.watch_look import Look
from ddp_probe.standing.lateness import Waited
from ddp_probe.wording.text import about
from ddp_probe.wording.words import clock, named, size


class Row(NamedTuple):
    """Ranks at the same place."""

    ranks: List[int]
    state: str
    phase: str
    call: str  # What they are in, or were last in.
    group: str  # The ranks of its group.
    seconds: Optional[float]  # Those of the rank that has been there longest.
    site: str
    speed: Optional[float]  # The speed of the slowest.
    why: str  # Why they stand out; empty if they do not.
    memory: Optional[int] = None  # The memory of the rank that holds the most on its card.
    waited: Optional[Waited] = None  # The wait of the rank that has waited longest.


def rows(look: Look) -> List[Row]:
    """Return the rows."""
    alike: Dict[Tuple[str, ...], List[Position]] = {}
    for position in look.ranks:
        alike.setdefault((*_cells(position), look.outliers.get(position.rank, "")), []).append(position)
    table = [_row(key, ranks, look) for key, ranks in alike.items()]
    shown = {position.rank for position in look.ranks}
    rest = [rank for rank in look.absent if rank not in shown]
    if rest:
        table.append(Row(rest, NO_LEDGER, "", "", "", None, "", None, ""))
    return sorted(table, key=lambda row: (not row.why, len(row.ranks) if row.why else 0, row.state == NO_LEDGER, -(row.seconds or 0.0), row.ranks))


def _row(key: Sequence[str], ranks: Sequence[Position], look: Look) -> Row:
    state, phase, call, group, site, why = key
    of_ranks = [look.speed[position.rank] for position in ranks]
    speeds = [speed for speed in of_ranks if speed is not None]
    waited = [look.waited[position.rank] for position in ranks if position.rank in look.waited]
    longest = max(position.seconds for position in ranks)
    memory = max([look.memory[position.rank] for position in ranks if position.rank in look.memory], default=None)
    numbers = [position.rank for position in ranks]
    speed, wait = min(speeds, default=None), max(waited, default=None)
    return Row(numbers, state, phase, call, group, longest, site, speed, why, memory, wait)


def _cells(position: Position) -> Tuple[str, str, str, str, str]:
    """Return what is equal for ranks in one row; the step too if the phase counts steps."""
    phase = "%s %d" % (position.phase, position.step) if position.phase == "backward" else position.phase
    return (
        "" if position.state == RUNNING else position.state,
        phase,
        call(position),
        group(position),
        "%s:%d" % (position.site.file, position.site.line) if position.site is not None else "",
    )


def call(position: Position) -> str:
    """Return the call that a rank is in, or that it has left."""
    if not position.op:
        return ""
    peer = " with %d" % position.peer if position.peer >= 0 else ""
    number = " %d" % position.number if position.number else ""
    return "%s%s%s%s" % ("" if position.waits else "after ", position.op, number, peer)


def group(position: Position) -> str:
    """Return the ranks of the group of that call."""
    return position.group.ranks or position.group.description if position.group is not None else ""


# Prints one look at a running job: a row for all ranks at the same place, and a sentence for each that stands out.

ROWS = 24
"""Most rows of the table."""

_SENTENCES = 8
_PROBLEMS = 2
_NEARLY_A_MINUTE = 55  # Seconds; the step that has not ended yet is missing.
_Column = Tuple[str, List[str]]


def table_lines(look: Look, run: str, width: int, most: int = ROWS, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the page: what was looked at, the table, who stands out, what could not be read."""
    table = rows(look)
    yield StyledLine(cut(_title(look, run, say), width), STRONG)
    yield from _table(table[:most], width, say)
    if len(table) > most:
        yield StyledLine("  " + say("%d more rows; --json has every rank.") % (len(table) - most), QUIET)
    yield from _why(table, width, say)
    for path, why in list(look.problems.items())[:_PROBLEMS]:
        yield StyledLine(cut(safe.line(os.path.basename(path) + say(": ") + say.text(why)), width), WARN)
    if len(look.problems) > _PROBLEMS:
        yield StyledLine(say("%d more files could not be read.") % (len(look.problems) - _PROBLEMS), WARN)


def _title(look: Look, run: str, say: Language) -> str:
    over = say(", all ended") if look.over else ""
    when, ranks = say.text(clock(look.when)), say.counted(len(look.ranks), "rank")
    return safe.line("%s  %s%s%s%s" % (when, run, say(", "), ranks, over))


def _table(table: Sequence[Row], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield the table; if it is too wide, the group and then the speed are left out, then lines are cut."""
    parts = _columns(table, say)
    for name in ("group", "waited", "steps/s"):
        if max(map(safe.width, _texts(parts, say)), default=0) + 2 > width:
            parts = [part for part in parts if part[0] != name]
    head, *texts = _texts(parts, say)
    yield StyledLine("  " + cut(head, width - 2), STRONG)
    for row, text in zip(table, texts):
        styled = StyledLine(("> " if row.why else "  ") + cut(text, width - 2), BAD if row.why else "")
        yield linked(styled, safe.line(_short(row.site)), row.site.rpartition(":")[0])


def _columns(table: Sequence[Row], say: Language) -> List[_Column]:
    groups = [row.group for row in table]
    columns: List[_Column] = [
        ("ranks", [ranks_table.few(row.ranks) for row in table]),
        ("state", [say.state(row.state) for row in table]),
        ("phase", [row.phase for row in table]),
        ("call", [row.call for row in table]),
        ("group", groups if len(set(groups)) > 1 else []),
        ("for", ["" if row.seconds is None else duration(row.seconds) for row in table]),
        ("steps/s", ["" if row.speed is None else "%.3g" % row.speed for row in table]),
        ("memory", ["" if row.memory is None else size(row.memory) for row in table]),
        ("waited", [_waited(row.waited, say) for row in table]),
        ("line", [_short(row.site) for row in table]),
    ]
    return [(name, [cell or "-" for cell in cells]) for name, cells in columns if any(cells)]


def _waited(waited: Optional[Waited], say: Language) -> str:
    """Return the share of the last minute; of how many seconds it is, if the steps that are kept reach back less far."""
    if waited is None:
        return ""
    return "%d%%%s" % (round(100 * waited.share), say(" of %s") % duration(waited.seconds) if waited.seconds < _NEARLY_A_MINUTE else "")


def _texts(parts: Sequence[_Column], say: Language) -> List[str]:
    names, cells = [say(name) for name, _ in parts], [cells for _, cells in parts]
    return columns([names, *zip(*cells)])


def _why(table: Sequence[Row], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield why ranks stand out; equal reasons share a sentence."""
    ranks_of: Dict[str, List[int]] = {}
    for row in table:
        if row.why:
            ranks_of.setdefault(row.why, []).extend(row.ranks)
    for why, those in list(ranks_of.items())[:_SENTENCES]:
        for line in wrap(_sentence(those, why, say), width, "", "  "):
            yield StyledLine(line, BAD)
    if len(ranks_of) > _SENTENCES:
        yield StyledLine(say("%d more reasons; --json has them.") % (len(ranks_of) - _SENTENCES), QUIET)


def _sentence(ranks: Sequence[int], why: str, say: Language) -> str:
    """Return what is true of these ranks, whose number decides about the verb."""
    return "%s %s" % (say.text(ranks_table.who(ranks)), say.text(about(why, they=named(ranks))))


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
