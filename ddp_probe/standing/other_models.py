"""Ranks that pass different models forward in one step: the buffers or the gradients of one model meet those of another.

Nothing fails if the models are built alike, and the line may be the same. Each rank counts its models as it comes to them, so their numbers
are compared by which have met before: two ranks that part there have passed another model than the one that belonged to it until then.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.standing.rank_standing import LedgerStandings
from ddp_probe.standing.sequence import SequenceEntry, SequenceParting, compared_ranks, kept_sequence
from ddp_probe.standing.stalls import BACKWARD, FORWARD

_MOST_RANKS = 16  # Their ledgers are read again.


class _Step(NamedTuple):
    """The forward passes between two backward passes in which ranks meet."""

    in_buffers: List[SequenceEntry]
    in_gradients: List[SequenceEntry]


class _Meeting(NamedTuple):
    """The passes of two ranks that met in a step, and the last that met before."""

    step: int
    entries: Tuple[SequenceEntry, SequenceEntry]
    shared: Optional[SequenceEntry]


def other_models(standings: LedgerStandings) -> Optional[SequenceParting]:
    """Return the first forward passes at which ranks passed models that do not belong together; None if there are none."""
    ranks = compared_ranks(standings)
    chosen = ranks[:: max(1, len(ranks) // _MOST_RANKS)][:_MOST_RANKS]
    entries = {rank: kept_sequence(standings.ranks[rank]) for rank in chosen}
    steps = {rank: _steps(entries[rank]) for rank in chosen}
    fewest = min((len(each) for each in steps.values()), default=0)
    if len(steps) < 2 or not fewest:
        return None
    if not all(_is_whole(each) for each in entries.values()):
        steps = {rank: each[-fewest:] for rank, each in steps.items()}  # All have come to their end together.
    first, *rest = steps
    found = {rank: _first_meeting(steps[first], steps[rank]) for rank in rest}
    meetings = {rank: meeting for rank, meeting in found.items() if meeting is not None}
    if not meetings:
        return None
    begin = min(meeting.step for meeting in meetings.values())
    others = [rank for rank, meeting in meetings.items() if meeting.step == begin]
    usual = [rank for rank in steps if rank not in others]
    made, common, shared = meetings[others[0]].entries[1], meetings[others[0]].entries[0], meetings[others[0]].shared
    if len(usual) < len(others):
        usual, others, made, common = others, usual, common, made
    is_sure = len(usual) > len(others)
    blame = others if is_sure else sorted((*usual, *others))
    sides = tuple(others), tuple(usual)
    return SequenceParting(tuple(blame), sides[1], shared, made, common, is_sure, sides=sides, is_other_model=True)


def _steps(entries: Sequence[SequenceEntry]) -> List[_Step]:
    """Return the steps of a rank in which ranks can have met; a backward pass of a model of its own is none."""
    steps: List[_Step] = []
    forwards: List[SequenceEntry] = []
    for entry in entries:
        if entry.op == FORWARD and entry.model:
            forwards.append(entry)
        elif entry.op == BACKWARD and forwards:
            steps.append(_step(forwards))
            forwards = []
    if forwards:
        steps.append(_step(forwards))
    return steps


def _step(forwards: Sequence[SequenceEntry]) -> _Step:
    in_gradients = [entry for entry in forwards if not (entry.is_held_back or entry.sends_buffers)]
    return _Step([entry for entry in forwards if entry.sends_buffers], in_gradients)


def _is_whole(entries: Sequence[SequenceEntry]) -> bool:
    """Tell whether the first forward pass of a rank is there."""
    return next((entry.number for entry in entries if entry.op == FORWARD), 0) == 1


def _first_meeting(one: Sequence[_Step], other: Sequence[_Step]) -> Optional[_Meeting]:
    """Return the first passes of two ranks that met although their models belong to others by what met before."""
    partners: Tuple[Dict[int, int], Dict[int, int]] = ({}, {})
    before: Optional[SequenceEntry] = None
    for number, steps in enumerate(zip(one, other)):
        for first, second in _pairs(*steps):
            known = partners[0].setdefault(first.model, second.model), partners[1].setdefault(second.model, first.model)
            if known != (second.model, first.model):
                return _Meeting(number, (first, second), before)
            before = first
    return None


def _pairs(one: _Step, other: _Step) -> List[Tuple[SequenceEntry, SequenceEntry]]:
    """Return the passes of a step that met, as far as it is known: one after another if buffers are sent, and a single one in the gradients."""
    pairs = list(zip(one.in_buffers, other.in_buffers)) if len(one.in_buffers) == len(other.in_buffers) else []
    models = [{entry.model for entry in step.in_gradients} for step in (one, other)]
    return [*pairs, (one.in_gradients[-1], other.in_gradients[-1])] if len(models[0]) == len(models[1]) == 1 else pairs
