"""Folds ranks that stand at the same place into one row; rows of ranks that stand out come first, then those that wait longest."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading.lateness import Waited
from ddp_probe.showing.watch.look import Look
from ddp_probe.showing.watch.position import NO_LEDGER, RUNNING, Position


class Row(NamedTuple):
    """Ranks at the same place."""

    ranks: List[int]
    state: str
    phase: str
    call: str  # What they are in, or were last in.
    group: str  # The ranks of its group.
    seconds: Optional[float]  # Of the rank that has been there longest.
    site: str
    speed: Optional[float]  # Of the slowest.
    why: str  # Why they stand out; empty if they do not.
    memory: Optional[int] = None  # Of the one that holds the most on its card.
    waited: Optional[Waited] = None  # Of the one that has waited most.


def rows(look: Look) -> List[Row]:
    """Return the rows."""
    alike: Dict[Tuple[str, ...], List[Position]] = {}
    for position in look.ranks:
        alike.setdefault((*_cells(position), look.outliers.get(position.rank, "")), []).append(position)
    made = [_row(key, ranks, look) for key, ranks in alike.items()]
    shown = {position.rank for position in look.ranks}
    rest = [rank for rank in look.absent if rank not in shown]
    if rest:
        made.append(Row(rest, NO_LEDGER, "", "", "", None, "", None, ""))
    return sorted(made, key=lambda row: (not row.why, len(row.ranks) if row.why else 0, row.state == NO_LEDGER, -(row.seconds or 0.0), row.ranks))


def _row(key: Sequence[str], ranks: Sequence[Position], look: Look) -> Row:
    state, phase, call, group, site, why = key
    speeds = [speed for each in ranks for speed in [look.speed[each.rank]] if speed is not None]
    waited = [look.waited[each.rank] for each in ranks if each.rank in look.waited]
    longest = max(each.seconds for each in ranks)
    memory = max([look.memory[each.rank] for each in ranks if each.rank in look.memory], default=None)
    return Row(
        [each.rank for each in ranks], state, phase, call, group, longest, site, min(speeds, default=None), why, memory, max(waited, default=None)
    )


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
