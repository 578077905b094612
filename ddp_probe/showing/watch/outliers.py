"""Which ranks stand out, by standing/splits.py, and why, in a few words; only once others have waited for a while."""

import os
from typing import Dict, List, Optional, Sequence

from ddp_probe.reading import rank_stacks, whole_ledger
from ddp_probe.reading.rank_ledger import LedgerCall, RankLedger
from ddp_probe.reading.whole_ledger import Record
from ddp_probe.shared.alignment import AlignedCall, Departure
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.showing.watch import watched_files
from ddp_probe.showing.watch.position import ELSEWHERE, FAILED, GONE, OFF, OVER, RUNNING, STOPPED, Position
from ddp_probe.standing import condition_values, rank_standing
from ddp_probe.standing.rank_standing import PATIENCE, LedgerStanding, Left, StandingsOf
from ddp_probe.standing.sequence import SequenceEntry, SequenceParting
from ddp_probe.standing.splits import ALONE, DIFFER, Split, split
from ddp_probe.standing.stalls import PASSES
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import ONE, named, quoted


class LiveStanding(LedgerStanding):
    """One rank of a job that runs."""

    __slots__ = ("position",)

    def __init__(self, position: Position, kept: RankLedger) -> None:
        super().__init__(position.rank, kept, 0.0, rank_standing.inside(kept, gave_up=False), rank_standing.open_phase(kept))
        self.position = position
        self.until = kept.when(position.since_ns) + position.seconds if position.since_ns else self.moved()
        self.runs = position.state not in OVER
        self.left = None if self.runs else Left(position.state, self.moved())

    def records(self) -> List[Record]:
        """Return the calls that the ledger holds, read again."""
        return whole_ledger.read(self.ledger.path).records

    def sequence(self) -> List[Record]:
        """Return the calls and the passes that the ledger holds, read again."""
        return whole_ledger.read(self.ledger.path).sequence


def reasons(positions: Sequence[Position], kept: Dict[int, RankLedger], absent: Sequence[int]) -> Dict[int, str]:
    """Return why each rank that stands out does so."""
    stopped = _not_running(positions)
    failed = any(position.state in (STOPPED, FAILED) for position in positions if position.rank in stopped)
    if failed or not any(map(_waits, positions)):
        return stopped
    ranks = {position.rank: LiveStanding(position, kept[position.rank]) for position in positions}
    groups = rank_standing.groups_of(ranks.values())
    unknown = {*absent, *(rank_standing.members_of(groups) - set(ranks))}
    unknown.update(position.rank for position in positions if position.state == OFF or not kept[position.rank].complete)
    standings = StandingsOf(ranks, groups, unknown)
    parted = split(standings)
    if parted is None or not parted.blame:
        return stopped
    values = _values(standings, parted.sequence)
    reason_of = _Reasons(parted, {position.rank: position for position in positions}, values)
    answer = {rank: stopped.get(rank) or reason_of.of(rank) for rank in parted.blame}
    if values and parted.sequence is not None and parted.left is None:
        answer[min(answer)] = joined([answer[min(answer)], _decided(parted.sequence), values], by="")
    return answer


def _waits(position: Position) -> bool:
    return (position.waits or position.phase in PASSES) and position.seconds >= PATIENCE


def _not_running(positions: Sequence[Position]) -> Dict[int, str]:
    """Ranks that do not run while others do."""
    if not any(position.state in (RUNNING, ELSEWHERE) for position in positions):
        return {}
    return {position.rank: _process(position) for position in positions if position.state in (STOPPED, *OVER)}


def _process(position: Position) -> str:
    if position.state == STOPPED:
        return say("{they:is|are} stopped, by a signal such as SIGSTOP or by a debugger", they=ONE)
    if position.state == GONE:
        return say("{they:is|are} gone without an end line: killed, or crashed", they=ONE)
    return say("{they:has|have} {state} while others run", they=ONE, state=position.state)


class _Reasons:
    """Why the ranks stand out that are to blame for a split."""

    def __init__(self, parted: Split, positions: Dict[int, Position], values: str) -> None:
        self._parted = parted
        self._values = values
        self._positions = positions

    def of(self, rank: int) -> str:
        """Return why this rank does."""
        parted = self._parted
        left = parted.left
        if left is not None and rank in left.ranks:
            return joined([_leaves(left), self._values], by="")
        if parted.departure is not None:
            return _departs(parted.departure)
        if parted.mixed is not None:
            return _met(parted, rank)
        if parted.kind == DIFFER:
            return self._unlike(rank)
        if rank in parted.here:
            return self._stays(self._positions[rank])
        if parted.what in PAIRED:
            call = _numbered(parted.what, parted.number)
            return say("{they:does|do} not make the call that matches {call} of {other}", they=ONE, call=call, other=named(parted.here[:1]))
        return self._elsewhere(self._positions[rank])

    def _stays(self, position: Position) -> str:
        """Say of a rank that waits why it may be wrong itself."""
        parted = self._parted
        if parted.what in PAIRED:
            return say(
                "{they:is|are} in {call} with {peer}, which does not make the matching call",
                they=ONE,
                call=_call(position),
                peer=named([position.peer]),
            )
        where = _pass_of(position.phase, position.step) if parted.what in PASSES else _call(position)
        if parted.kind == ALONE:
            return say("{they:is|are} in {where}, and most of its group is not", they=ONE, where=where)
        wait = next((wait_of for wait_of in parted.circle if position.rank in wait_of.here), parted)
        if len(wait.there) == 1:
            return say("{they:is|are} in {where}, which {other} does not reach", they=ONE, where=where, other=named(wait.there))
        return say("{they:is|are} in {where}, which {count} ranks do not reach", they=ONE, where=where, count=len(wait.there))

    def _elsewhere(self, position: Position) -> str:
        """Say how the place of a rank differs from the call or the pass in which others are."""
        parted = self._parted
        if parted.what in PASSES:
            where = _pass_of(parted.what, parted.number)
            there = say("{where}, in which {count} {count:rank is|ranks are}", where=where, count=len(parted.here))
        else:
            where = _numbered(self._positions[parted.here[0]].op, parted.number)
            there = say("{where}, in which {count} {count:rank waits|ranks wait}", where=where, count=len(parted.here))
        if not position.waits:
            return say("{they:is|are} not in {there}", they=ONE, there=there)
        if _is_in(position, parted):
            return say("{they:is|are} in {call}, behind {there}", they=ONE, call=_call(position), there=there)
        return say("{they:is|are} in {call}, not in {there}", they=ONE, call=_call(position), there=there)

    def _unlike(self, rank: int) -> str:
        """Say how a rank's call differs from that of others."""
        parted = self._parted
        mine = _call_of(parted, rank)
        other, ranks = next((call, ranks) for call, ranks in parted.calls if rank not in ranks)
        own, others = _shape(mine, other, parted.number), _shape(other, mine, parted.number)
        wait = all(self._is_there(rank) for rank in ranks)
        if wait:
            tail = say("in which {count} {count:rank waits|ranks wait}", count=len(ranks))
        else:
            tail = say("which {count} {count:rank calls|ranks call}", count=len(ranks))
        if self._is_there(rank):
            return say("{they:is|are} in {own}, not in {others}, {tail}", they=ONE, own=own, others=others, tail=tail)
        return say("{they:has|have} called {own}, not {others}, {tail}", they=ONE, own=own, others=others, tail=tail)

    def _is_there(self, rank: int) -> bool:
        """Tell whether a rank waits in the call at which the ranks part."""
        position = self._positions[rank]
        return position.waits and position.number == self._parted.number and _is_in(position, self._parted)


def _departs(departure: Departure) -> str:
    new, usual = _site(departure.made), _site(departure.usual)
    if not departure.others:
        return say("{they:has|have} called {made} when it had always called {usual}", they=ONE, made=new, usual=usual)
    count = len(departure.others)
    return say("{they:has|have} called {made} when {count} {count:rank|ranks} called {usual}", they=ONE, made=new, usual=usual, count=count)


def _leaves(left: SequenceParting) -> str:
    """Say at which entry a rank left the sequence of the others, and which statement decided."""
    why = _decided(left)
    if left.fewer:
        if left.fewer > 0:
            return say("{they:has|have} made {count} backward passes fewer than the others for as many forwards", they=ONE, count=left.fewer)
        return say("{they:has|have} made {count} backward passes more than the others for as many forwards", they=ONE, count=-left.fewer)
    usual = _entry(left.usual)
    if left.is_caught:
        return say("went on after {made} had raised{why}", made=_entry(left.made), why=why)
    if left.made is not None and left.made.ends_loader:
        return say("{they:has|have} no further batch, when the others went on to {usual}{why}", they=ONE, usual=usual, why=why)
    return say("went on to {made}, when the others went on to {usual}{why}", made=_entry(left.made), usual=usual, why=why)


def _decided(left: SequenceParting) -> str:
    if left.decision is None:
        return ""
    statement = left.decision.loop or left.decision.statements[0]
    where = "%s:%d" % (os.path.basename(statement.file), statement.line)
    if left.decision.is_sure or left.decision.loop is not None:
        return say("; decided by '{statement}' at {where}", statement=quoted(statement.text), where=where)
    return say("; most likely decided by '{statement}' at {where}", statement=quoted(statement.text), where=where)


def _values(standings: StandingsOf[LiveStanding], left: Optional[SequenceParting]) -> str:
    """Return the values in the condition that decided, if the ranks have written them where they stand."""
    if left is None or left.decision is None or left.fewer:
        return ""
    logs = {rank: watched_files.log_of(standing.ledger.path) for rank, standing in standings.ranks.items()}
    stood = {rank: rank_stacks.recorded(log) for rank, log in logs.items()}
    frames = {rank: stacks.values for rank, stacks in stood.items() if stacks is not None and not stacks.moved_on}
    compared = condition_values.compared(standings, left, left.decision.loop or left.decision.statements[0], frames)
    return say(" ({values})", values=compared) if compared else ""


def _entry(entry: Optional[SequenceEntry]) -> str:
    if entry is None:
        return say("nothing that is recorded")
    return say("{call}{where}", call=_numbered(entry.op, entry.number), where=_line(entry.site.file, entry.site.line))


def _met(parted: Split, rank: int) -> str:
    """Say at which line a rank made a call that met another line's."""
    mine, others = sorted((call for call, _ in parted.calls), key=lambda call: call != _call_of(parted, rank))
    mine_numbered = _numbered(mine.op, parted.number)
    return say("made {call}{here}, which met that{there}", call=mine_numbered, here=_line_of(mine), there=_line_of(others))


def _call_of(parted: Split, rank: int) -> LedgerCall:
    return next(call for call, ranks in parted.calls if rank in ranks)


def _line_of(call: LedgerCall) -> str:
    return _line(call.site.file, call.site.line) if call.site is not None else ""


def _line(file: str, number: int) -> str:
    return say(" at {place}", place="%s:%d" % (os.path.basename(file), number)) if file else ""


def _is_in(position: Position, parted: Split) -> bool:
    """Tell whether a rank's call belongs to the group in which the ranks part."""
    return position.group is not None and parted.group is not None and position.group.id == parted.group.id


def _numbered(op: str, number: int) -> str:
    return "%s %d" % (op, number)


def _call(position: Position) -> str:
    return _numbered(position.op, position.number)


def _pass_of(phase: str, step: int) -> str:
    return say("{phase} of step {step}", phase=phase, step=step)


def _site(call: AlignedCall) -> str:
    return say("{op}{where}", op=call.op, where=_line(call.file, call.line))


def _shape(mine: LedgerCall, other: LedgerCall, number: int) -> str:
    """Return a call with what distinguishes it from others."""
    call = _numbered(mine.op, number)
    if mine.op != other.op:
        return call
    size: str = ""
    if (mine.elements, mine.dtype) != (other.elements, other.dtype):
        size = say(" of {elements} {dtype}", elements=mine.elements, dtype=mine.dtype)
    root = say(" from root {root}", root=mine.root) if mine.root != other.root else ""
    return say("{call}{size}{root}", call=call, size=size, root=root)
