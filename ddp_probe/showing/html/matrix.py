"""Ranks x devices: how many parameters are where."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared import schema
from ddp_probe.showing import ranks_table
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.html.quotes import LineLink, Quotes
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.rank_state import RankState, parameters_on

_COLUMNS = 12  # Devices with their own column.
_MEMORY = (("memory", WORDS["matrix_memory"]), ("near", WORDS["matrix_near"]), ("waited", WORDS["matrix_waited"]))
_NUMBER = re.compile(r"\d+")


class DeviceCell(NamedTuple):
    """How many parameters are on a device; `all` if there are no others."""

    parameters: int
    all: bool


class MatrixRow(NamedTuple):
    """Ranks in the same state."""

    who: str
    size: int
    guilty: bool
    host: str
    cells: List[DeviceCell]
    others: str  # Devices without a column.
    device_ids: str
    card: str
    memory: str
    near: str
    waited: str
    phase: str
    end: str
    link: Optional[LineLink]


class Matrix(NamedTuple):
    """The rows and their columns."""

    devices: List[str]
    rows: List[MatrixRow]
    hosts: bool
    others: bool
    wrapped: bool
    cards: bool
    memory: List[Tuple[str, str]]  # The columns memory, near and waited, if they have content: the field and its title.
    left_out: int
    relative: bool
    ranks: int


def matrix(diagnosis: Diagnosis, states: Sequence[RankState], quotes: Quotes, say: Language = ENGLISH) -> Matrix:
    """Return the matrix of a run; it has no rows if no process is known."""
    run = diagnosis.run
    guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
    processes = {process.rank: process for process in run.processes}
    counts = {rank: parameters_on(process) for rank, process in processes.items()}
    table = ranks_table.rows_of([_with_counts(state, counts.get(state.rank, {})) for state in states], guilty)
    held = [_named(row, processes, counts, relative=table.relative) for row in table.rows]
    devices = _devices(held)
    rows = [_row(row, counts, devices, _link(row, processes, quotes), say) for row, counts in zip(table.rows, held)]
    return Matrix(
        devices,
        rows,
        len({row.host for row in table.rows if row.host}) > 1,
        any(row.others for row in rows),
        any(row.device_ids for row in rows),
        any(row.card for row in rows),
        [(name, say(title)) for name, title in _MEMORY if any(getattr(row, name) for row in rows)],
        table.left_out,
        table.relative,
        len(states),
    )


def _with_counts(state: RankState, held: Dict[str, int]) -> RankState:
    """Return a state in which the counts stand in place of the last event, so that ranks with other counts do not share a row."""
    return state._replace(last=" ".join(str(held[device]) for device in sorted(held)), site="")


def _named(
    row: ranks_table.StateRow,
    processes: Dict[Optional[int], LoggedProcess],
    counts: Dict[Optional[int], Dict[str, int]],
    *,
    relative: bool,
) -> Dict[str, int]:
    """Return the counts of a row's first rank; with many ranks, the card of each rank is N."""
    rank = row.ranks[0] if row.ranks else None
    process, held = processes.get(rank), counts.get(rank, {})
    if process is None or not relative or "N" not in row.devices:
        return held
    return {_NUMBER.sub(lambda match: "N" if int(match.group()) == process.local_rank else match.group(), device): n for device, n in held.items()}


def _devices(held: Sequence[Dict[str, int]]) -> List[str]:
    """Return the devices that have a column: the CPU first, then by name and number."""
    names = {device for counts in held for device in counts}
    return sorted(names, key=_natural)[:_COLUMNS]


def _natural(device: str) -> Tuple[bool, str, int]:
    kind, _, number = device.partition(":")
    return kind != "cpu", kind, int(number) if number.isdecimal() and len(number) < 10 else -1


def _link(
    row: ranks_table.StateRow,
    processes: Dict[Optional[int], LoggedProcess],
    quotes: Quotes,
) -> Optional[LineLink]:
    """Return where the log says it: at the last wrap of the row's first rank, else at its last line."""
    process = processes.get(row.ranks[0] if row.ranks else None)
    if process is None:
        return None
    wraps: List[Optional[LoggedCall[Any]]] = [process.final(schema.Wrap), process.final(schema.WrapModel)]
    wrap = next(filter(None, wraps), None)
    return quotes.link(wrap.at if wrap is not None else process.last_at if process.last_at.line else LogLine(process.file, 1))


def _row(row: ranks_table.StateRow, held: Dict[str, int], devices: Sequence[str], link: Optional[LineLink], say: Language) -> MatrixRow:
    whole = sum(held.values())
    cells = [DeviceCell(held.get(device, 0), 0 < held.get(device, 0) == whole) for device in devices]
    others = ", ".join("%s %d" % (device, held[device]) for device in sorted(held) if device not in devices)
    who = ranks_table.few(row.ranks, 8)
    rest = row.device_ids, row.card, row.memory, row.near, row.waited, say.state(row.phase), say.state(row.end)
    return MatrixRow(who, len(row.ranks), row.guilty, row.host, cells, others, *rest, link)
