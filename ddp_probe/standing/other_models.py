"""Ranks that pass different models forward in one step: buffers or gradients of one meet those of another.

Nothing fails if the models are built alike, and the line may be the same. Each rank counts its models as it
comes to them, so numbers are compared by which have met before.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.standing.chosen_value import chosen_callee
from ddp_probe.standing.deciding import Deciding
from ddp_probe.standing.rank_standing import LedgerStandings
from ddp_probe.standing.sequence import SequenceEntry, SequenceParting, compared_ranks, kept_sequence
from ddp_probe.standing.source_trees import SourceTrees
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
    """Return the first forward passes of models that met, and do not belong together."""
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
    common, made = meetings[others[0]].entries
    shared = meetings[others[0]].shared
    if len(usual) < len(others):
        usual, others, made, common = others, usual, common, made
    is_sure = len(usual) > len(others)
    blame = others if is_sure else sorted((*usual, *others))
    sides = tuple(others), tuple(usual)
    left = SequenceParting(tuple(blame), sides[1], shared, made, common, is_sure, sides=sides)
    sources = SourceTrees(min(standings.ranks[rank].moved() for rank in blame))
    return left._replace(is_other_model=True, decision=_chosen(sources, (made, common)))


def _chosen(sources: SourceTrees, entries: Tuple[SequenceEntry, SequenceEntry]) -> Optional[Deciding]:
    """Return what chose the model on either side, by the source."""
    chosen = [chosen_callee(sources, entry.way) for entry in entries if entry.way]
    return next((decision for decision in chosen if decision is not None), None)


def _steps(entries: Sequence[SequenceEntry]) -> List[_Step]:
    """Return the steps in which ranks can have met; a backward pass of a model of its own is none."""
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
    """Return the first passes that met although their models belong to others by what met before."""
    partners: Tuple[Dict[int, int], Dict[int, int]] = ({}, {})
    before: Optional[SequenceEntry] = None
    for number, steps in enumerate(zip(one, other)):
        for first, second in _pairs(*steps):
            partner = partners[0].setdefault(first.model, second.model)
            if partner != second.model or partners[1].setdefault(second.model, first.model) != first.model:
                return _Meeting(number, (first, second), before)
            before = first
    return None


def _pairs(one: _Step, other: _Step) -> List[Tuple[SequenceEntry, SequenceEntry]]:
    """Return the passes of a step that met, as far as it is known.

    If buffers are sent, they meet one after another; in the gradients, a single model of each rank does.
    """
    pairs: List[Tuple[SequenceEntry, SequenceEntry]] = []
    if len(one.in_buffers) == len(other.in_buffers):
        pairs += zip(one.in_buffers, other.in_buffers)
    models = [{entry.model for entry in one.in_gradients}, {entry.model for entry in other.in_gradients}]
    if len(models[0]) == len(models[1]) == 1:
        pairs.append((one.in_gradients[-1], other.in_gradients[-1]))
    return pairs
