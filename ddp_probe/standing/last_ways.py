"""Which statement took one rank away, by the ways of single calls: of its past, or of the line that lost it.

This is asked if the sequences show no parting: each rank plays a part of its own, or has made no call yet.
"""

from typing import List, Optional, Tuple

from ddp_probe.reading.whole_ledger import Record
from ddp_probe.shared.alignment import AlignedCall, Departure
from ddp_probe.standing.deciding import Deciding, deciding
from ddp_probe.standing.rank_standing import LedgerStanding, LedgerStandings
from ddp_probe.standing.sequence import Way, entry_of
from ddp_probe.standing.source_trees import SourceTrees


def of_departure(standings: LedgerStandings, departure: Departure) -> Optional[Deciding]:
    """Return the statement between the last call before a departure, the call made, and the usual one."""
    standing = standings.ranks[departure.rank]
    mine = _sequence(standing)
    others = _sequence(standings.ranks[departure.others[0]]) if departure.others else mine
    made = _place(mine, departure.made)
    usual = _place(others, departure.usual)
    if made is None or usual is None or not made:
        return None
    shared = entry_of(mine[made - 1]).way
    sources = SourceTrees(standing.moved())
    return deciding(sources, entry_of(mine[made]).way, entry_of(others[usual]).way, shared or None)


def of_leaver(left: LedgerStanding, other: LedgerStanding, lost: Way) -> Optional[Deciding]:
    """Return the statement by which a rank ended, while another came to the line at which it failed."""
    mine = _sequence(left)
    if not mine or not lost:
        return None
    met = {_number(record) for record in _sequence(other)}
    shared = [record for record in mine if _number(record) in met]
    last = mine[-1]
    end = entry_of(last).way if last.op == "destroy_process_group" else ()
    if shared and shared[-1] is last:
        return None
    return deciding(SourceTrees(left.moved()), end, lost, entry_of(shared[-1]).way if shared else None)


def _sequence(standing: LedgerStanding) -> List[Record]:
    records = standing.sequence()
    return [record for record in records if not (record.is_inner or record.in_side_thread or record.signal)]


def _number(record: Record) -> Tuple[str, str, int]:
    return record.op, record.group.id if record.group is not None else "", record.seq


def _place(sequence: List[Record], call: AlignedCall) -> Optional[int]:
    """Return where a rank made a call, by its line and its number; the latest, of several."""
    wanted = (call.op, call.file, call.line, call.seq)
    for place in range(len(sequence) - 1, -1, -1):
        record = sequence[place]
        site = record.site
        if site is not None and (record.op, site.file, site.line, record.seq) == wanted:
            return place
    return None
