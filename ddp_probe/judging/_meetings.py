"""The collectives in which two ranks met, by their ledgers: whether one rank can have waited for what the other has done."""

from typing import List, NamedTuple, Optional, Tuple

from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.shared.ledger_schema import PAIRED


class Meeting(NamedTuple):
    """A collective of two ranks, as the second one made it."""

    op: str
    number: int
    site: Optional[LedgerSite]


def last_meeting(first: LoggedProcess, until: float, second: LoggedProcess, before: float) -> Optional[Meeting]:
    """Return the last collective that the first rank entered before `until` and the second left before `before`, if none of the second is later.

    None also says that this cannot be told: a ledger is missing, its ring no longer has the calls, or the last one is asynchronous.
    """
    theirs = {_key(record): first.ledger.when(record.entered_ns) + first.offset for record in _collectives(first)} if first.ledger else {}
    ours: List[Record] = [record for record in _collectives(second) if record.left_ns and _left(second, record) <= before]
    if not ours:
        return None
    last = max(ours, key=lambda record: record.left_ns)
    if last.is_async or theirs.get(_key(last), until) >= until:
        return None
    return Meeting(last.op, last.seq, last.site)


def _left(process: LoggedProcess, record: Record) -> float:
    return (process.ledger.when(record.left_ns) if process.ledger is not None else 0.0) + process.offset


def _collectives(process: LoggedProcess) -> List[Record]:
    if process.ledger is None:
        return []
    return [one for one in process.whole_ledger().records if one.group is not None and one.seq and one.op not in PAIRED]


def _key(record: Record) -> Tuple[str, int]:
    return (record.group.id if record.group is not None else "", record.seq)
