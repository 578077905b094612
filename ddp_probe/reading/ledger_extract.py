"""Takes from a rank's ledger what a picture over time can show: the phases, the last calls and the longest ones. The others are counted."""

from typing import Any, List, NamedTuple, Optional, Tuple

from ddp_probe.reading import fold_file, ledger_file, whole_ledger
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.reading.whole_ledger import Ledger, Phase, Record
from ddp_probe.shared import ledger_schema as schema

_NUMBER, _ENTERED, _LEFT, _OUTER, _OP = (
    [field.name for field in schema.RECORD].index(name) for name in ("index", "entered_ns", "left", "outer", "op")
)
_OPERATIONS = schema.names(schema.OPERATIONS)
_Row = Tuple[Any, ...]


class LedgerExtract(NamedTuple):
    """Part of one ledger. Its times are on the monotonic clock of its host; `base` makes seconds since 1970 on the run's common clock of them."""

    base: float
    moved: float  # When the process last wrote, on the common clock.
    records: List[Record]
    phases: List[Phase]
    left_out: int  # How many calls are not among the records.

    def when(self, mono_ns: int) -> float:
        """Return a time of the ledger on the common clock."""
        return self.base + mono_ns * 1e-9


def extract(process: LoggedProcess, most: int) -> Optional[LedgerExtract]:
    """Return the phases and at most this many calls of a process; None without a ledger of its own. What its log says of groups is left out."""
    kept = process.ledger
    if kept is None or not (kept.groups or kept.phases):
        return None
    base, moved = kept.base + process.offset, kept.moved + process.offset
    full = _read(process)
    if full is None:
        records = _kept(kept)
        known = sum(calls.count for calls in kept.groups.values())
        return LedgerExtract(base, moved, records, list(kept.phases), max(0, known - len(records)))
    found, texts, rows = full
    own = [row for row in rows if not row[_OUTER] and not _is_logged(row, process)]
    chosen = _chosen(own, most)
    return LedgerExtract(base, moved, [whole_ledger._record(row, texts) for row in chosen], found.phases, len(own) - len(chosen))


def _read(process: LoggedProcess) -> "Optional[Tuple[Ledger, Any, List[_Row]]]":
    """Return the ledger as rows of numbers; None if the file is not there any more, as for one that was kept in a fold without its calls."""
    data = process.ledger_data if process.ledger_data is not None else fold_file.held_bytes(process.ledger_file)
    try:
        found = ledger_file.read(process.ledger_file) if data is None else ledger_file.Reading(data)
    except OSError:
        return None
    full = whole_ledger.parse_rows(found.data, "", found.before, found.left_out)
    header = full[0].header
    return full if header is not None and header.version in schema.READS else None


def _kept(kept: RankLedger) -> List[Record]:
    """Return the calls that every reading keeps: the last one of each group, the open ones."""
    found = [calls.last for calls in kept.groups.values() if calls.last is not None]
    return sorted({record.number: record for record in [*found, *kept.open, *filter(None, [kept.last])]}.values(), key=lambda one: one.number)


def _is_logged(row: _Row, process: LoggedProcess) -> bool:
    """Tell whether a call about groups is an event of the log as well."""
    return schema.ABOUT_GROUPS <= row[_OP] < schema.BATCH and "dist.%s" % _OPERATIONS.get(row[_OP]) in process.kept.kinds


def _chosen(rows: List[_Row], most: int) -> List[_Row]:
    """Return the last rows and, of those before, the open and then the longest ones, in order."""
    if len(rows) <= most:
        return rows
    before, last = rows[: -(most - most // 2)], rows[-(most - most // 2) :]
    return [*sorted(sorted(before, key=_length)[-(most // 2) :] if most > 1 else [], key=lambda row: int(row[_NUMBER])), *last]


def _length(row: _Row) -> float:
    """Return how long a call took; an open one took longest."""
    return float("inf") if not row[_LEFT] & 3 else float((row[_LEFT] >> 2) - row[_ENTERED])
