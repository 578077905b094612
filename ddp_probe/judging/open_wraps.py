"""The wrap of a model in which a rank waits for the others, or gave up, which no ledger has."""

from typing import Iterable, List, Optional

from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.reading.whole_ledger import Group, LedgerSite, Phase, Record
from ddp_probe.shared import schema
from ddp_probe.standing.stalls import WRAP


def open_wrap(process: LoggedProcess, ledger: RankLedger, *, gave_up: bool) -> Optional[Phase]:
    """Return the wrap that a rank is in, or gave up, if it has called nothing since."""
    call = process.final(schema.Wrap)
    if call is None or call.site is None or not (call.open or (gave_up and call.failure is not None)):
        return None
    entered_ns = _on_ledger(call.when - process.offset, ledger)
    if ledger.last is not None and ledger.last.entered_ns > entered_ns:
        return None
    left_ns = _on_ledger(call.until - process.offset, ledger) if call.until is not None else 0
    site = LedgerSite(call.site.file, call.site.line, call.site.function)
    state = "open" if call.open else "raised"
    return Phase(WRAP, process.count(schema.Wrap), entered_ns, left_ns, state, site, in_side_thread=False)


def record_of(wrap: Phase, before: List[Record], groups: Iterable[Group]) -> Record:
    """Return a wrap as the last call of a sequence, by the way that the call before it shows."""
    return Record(
        number=before[-1].number if before else 1,
        op=wrap.name,
        group=next((group for group in groups if group.nth == 1), None),
        seq=0,
        peer=-1,
        elements=0,
        tensors=0,
        dtype="",
        device="",
        site=wrap.site,
        entered_ns=wrap.entered_ns,
        waited_ns=0,
        left_ns=wrap.left_ns,
        state=wrap.state,
        outer=0,
        is_async=False,
        is_inner=False,
        in_side_thread=False,
        way=_way(wrap.site, before),
    )


def _on_ledger(when: float, ledger: RankLedger) -> int:
    """Return a time as the ledger has it."""
    return int((when - ledger.base) * 1e9)


def _way(site: Optional[LedgerSite], before: List[Record]) -> "tuple[LedgerSite, ...]":
    """Return the lines that lead to a line, by those that led to the last call of the same function."""
    if site is None:
        return ()
    for record in reversed(before):
        for depth, passed in enumerate(record.way):
            if (passed.file, passed.function) == (site.file, site.function):
                return (*record.way[:depth], site)
    return (site,)
