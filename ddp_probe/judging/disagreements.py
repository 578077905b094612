"""What the ledgers of ranks that all ended well disagree about: a failure that the job caught leaves its traces there.

Each is a reason not to call the run clear: a call that raised while others went on, a collective that some never made, a call in which a rank
was when it ended, an unequal number of steps.
"""

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ddp_probe.judging import left_sequence, proof
from ddp_probe.judging.ledgers import Standing, Standings, as_site, described, spoken, standings_of
from ddp_probe.judging.rule import Undecided
from ddp_probe.reading.model import Run
from ddp_probe.reading.whole_ledger import Group, Phase, Record
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.standing.item_order import first_mixed_calls
from ddp_probe.standing.sequence import compared_ranks
from ddp_probe.standing.stalls import BACKWARD, CALLS_ABOUT_GROUPS, FORWARD
from ddp_probe.standing.thread_calls import calls_at_once
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, command, counted, listed, named

_NEXT_SOURCE = say(
    "Read the run where the job's source is as it ran, or make a bundle there: {bundle}. If the two lines are the arms of one "
    "'if', nothing is wrong.",
    bundle=command("bundle"),
)
_NEXT_ORDER = say(
    "Look at the loop around this line: if the tensor belongs to the name, let all ranks go over the names in one order, with sorted(). "
    "If each rank has an order of its own on purpose, nothing is wrong."
)
_NEXT_NUMBERS = say(
    "Look at the loop around this line: if the numbers mean the same on all ranks, let all ranks go over "
    "the same numbers: all_reduce what chooses them, or choose them on one rank and broadcast them. If each "
    "rank adds up its own part, nothing is wrong."
)
_NEXT_VALUES = say(
    "Look at this line: if all ranks should exchange the same value, let all take one arm: all_reduce what "
    "is compared, or decide on one rank and broadcast the decision. If each rank gives the value that it has "
    "chosen, as for a maximum, nothing is wrong."
)
_NEXT_THREADS = say(
    "Give each thread a group of its own, made on all ranks in one order before the threads start "
    "(torch.distributed.new_group()), or make these calls in the main thread, once the threads have ended."
)
_MOST_RANKS = 8  # Whose ledgers are read again for calls of threads.
_WORK = ("backward", "forward", "optimizer", "train", "validate", "test")


class Abandoned(NamedTuple):
    """A call that raised on some ranks and that others, which have left, never made."""

    rank: int  # The first rank on which it raised.
    call: Union[Record, Phase]
    what: Text
    when: float
    left: List[int]


def abandoned(run: Run) -> Optional[Abandoned]:
    """Return the first such call, if the ledgers of those that left hold all that they made."""
    standings = standings_of(run)
    calls = [
        Abandoned(rank, phase, _described_call(phase), standings.ranks[rank].wall(phase.left_ns), _without(standings, rank, phase))
        for rank, phase in _lost_calls(standings)
    ]
    return min((call for call in calls if call.left), key=lambda call: call.when, default=None)


def _lost_calls(standings: Standings) -> Iterator[Tuple[int, Union[Record, Phase]]]:
    for rank, standing in standings.ranks.items():
        yield from ((rank, record) for record in standing.ledger.raised if _counts(record) and not _tried(standings, record))
        yield from ((rank, phase) for phase in standing.ledger.phases if _failed(phase) and phase.name in (BACKWARD, FORWARD))


def _described_call(call: Union[Record, Phase]) -> Text:
    where = at(as_site(call.site))
    if isinstance(call, Phase):
        return say("{call}{at}", call=spoken(call), at=where)
    return say("{call}{at}", call=described(call.op, call.elements, call.dtype, call.peer), at=where)


def _without(standings: Standings, rank: int, call: Union[Record, Phase]) -> List[int]:
    """Return the ranks that have left and never made a call."""
    if isinstance(call, Phase):
        known = set(standings.ranks) - standings.unknown
        missing = [other for other in known if standings.ranks[other].times(call.name) < call.times]
    elif call.group is not None and call.op in PAIRED:
        missing = [call.peer] if call.peer in standings.ranks and call.peer not in standings.unknown else []
    else:
        missing = [] if call.group is None else _behind(standings, call.group.id, call.seq)
    return sorted(other for other in missing if other != rank and standings.ranks[other].left is not None)


def _behind(standings: Standings, group: str, number: int) -> List[int]:
    return [rank for rank in _whole(standings, group) if standings.ranks[rank].count(group) < number]


def disagreements(run: Run) -> Iterator[Undecided]:
    """Yield what has to be answered before a run is clear, the strongest evidence alone."""
    undecided = disagreement(standings_of(run))
    if undecided is not None:
        yield undecided


def disagreement(standings: Standings) -> Optional[Undecided]:
    """Return the strongest evidence that ranks which have all ended well did not do the same; None if there is none."""
    for ask in (_raised, _unequal, _inside, _phases, _steps, _lines, _threads):
        undecided = ask(standings)
        if undecided is not None:
            return undecided
    return None


def _raised(standings: Standings) -> Optional[Undecided]:
    """Report calls that raised, except a call that raised on all ranks, after which all went on to other calls: the job had an alternative."""
    raised: List[Tuple[int, Record]] = []
    for rank, standing in standings.ranks.items():
        counted = filter(_counts, standing.ledger.raised)
        raised += [(rank, record) for record in counted if not _tried(standings, record)]
    if not raised:
        return None
    rank, first = min(raised, key=lambda item: standings.ranks[item[0]].wall(item[1].entered_ns))
    ranks = sorted({rank, *(other for other, record in raised if _same_call(record, first))})
    missing = _others(standings, first)
    if missing:
        template = "{who:capital} raised in {call}, which {others} never made; all ranks ended with exit code 0."
        return _asked(say(template, who=named(ranks), call=_described_call(first), others=named(missing)))
    template = "{who:capital} raised in {call}; all ranks ended with exit code 0."
    return _asked(say(template, who=named(ranks), call=_described_call(first)))


def _same_call(one: Record, other: Record) -> bool:
    """Tell whether two ranks made one call of a group together, from one line."""
    if one.group is None or other.group is None or one.op in PAIRED:
        return False
    return (one.group.id, one.seq, one.op, one.site) == (other.group.id, other.seq, other.op, other.site)


def _counts(record: Record) -> bool:
    return not record.in_side_thread and record.op not in CALLS_ABOUT_GROUPS


def _tried(standings: Standings, record: Record) -> bool:
    if record.group is None or record.op in PAIRED:
        return False
    group, members = standings.groups.get(record.group.id, (record.group, set()))
    known = [standings.ranks[rank] for rank in members if rank in standings.ranks]
    return len(known) == group.size and all(_went_on(standing, group.id, record.seq) for standing in known)


def _went_on(standing: Standing, group: str, number: int) -> bool:
    raised = any(record.group is not None and record.group.id == group and record.seq == number for record in standing.ledger.raised)
    return raised and standing.count(group) > number


def _others(standings: Standings, record: Record) -> List[int]:
    """Return the ranks that never made the call that raised."""
    if record.group is None or record.op in PAIRED:
        return []
    return _behind(standings, record.group.id, record.seq)


def _whole(standings: Standings, name: str) -> Set[int]:
    """Return the ranks of a group if the ledger of each is complete."""
    group, members = standings.groups.get(name, (Group(), set()))
    return members if len(members) == group.size and not members & standings.unknown else set()


def _unequal(standings: Standings) -> Optional[Undecided]:
    """Tell of a collective that some ranks of a group made and others never did."""
    for name in standings.groups:
        counts = {rank: standings.ranks[rank].count(name) for rank in _whole(standings, name)}
        if len(set(counts.values())) > 1:
            return _of_counts(standings, name, counts)
    return None


def _of_counts(standings: Standings, name: str, counts: Dict[int, int]) -> Undecided:
    fewest = min(counts.values())
    ahead, behind = [rank for rank in counts if counts[rank] > fewest], [rank for rank in counts if counts[rank] == fewest]
    calls = standings.ranks[ahead[0]].calls(name)
    call = calls.call(fewest + 1) if calls is not None else None
    what = say("a collective")
    if call is not None:
        what = say("{call}{at}", call=call.op, at=at(as_site(call.site)))
    return _asked(
        say(
            "{who:capital} made {call}, number {number} of the group, which {others} never made; all ranks ended with exit code 0.",
            who=named(ahead),
            call=what,
            number=fewest + 1,
            others=named(behind),
        )
    )


def _inside(standings: Standings) -> Optional[Undecided]:
    """Report ranks that were in a call when they ended; work that nobody waited for does not count."""
    inside = [
        (rank, standing.inside) for rank, standing in sorted(standings.ranks.items()) if standing.inside is not None and _counts(standing.inside)
    ]
    if not inside:
        return None
    ranks, record = [rank for rank, _ in inside], inside[0][1]
    template = "{who:capital} ended in {call}; all ranks ended with exit code 0."
    return _asked(say(template, who=named(ranks), call=_described_call(record)))


def _phases(standings: Standings) -> Optional[Undecided]:
    """Tell of a pass, a step of an optimizer or a loop that raised the last time, on some ranks or on all."""
    failed: List[Tuple[int, Phase]] = []
    for rank, standing in sorted(standings.ranks.items()):
        failed += [(rank, phase) for phase in standing.ledger.phases if _failed(phase)]
    if not failed:
        return None
    ranks, phase = sorted({rank for rank, _ in failed}), failed[0][1]
    template = "{who:capital} raised in {call}; all ranks ended with exit code 0."
    return _asked(say(template, who=named(ranks), call=_described_call(phase)))


def _failed(phase: Phase) -> bool:
    return phase.name in _WORK and phase.state == "raised" and not phase.in_side_thread


def _steps(standings: Standings) -> Optional[Undecided]:
    """Report unequal numbers of optimizer steps, among the ranks that make any; not if ranks fill in for each other, as in join()."""
    ranks = [rank for rank in standings.ranks if rank not in standings.unknown]
    counts = {rank: standings.ranks[rank].times("optimizer") for rank in ranks}
    made = {rank: count for rank, count in counts.items() if count}
    if len(set(made.values())) < 2 or any(_stand_in(standings, name, made) for name in standings.groups):
        return None
    most = max(made.values())
    fewer = sorted(rank for rank in made if made[rank] < most)
    less = [say("{who} {times}", who=named([rank]), times=counted(made[rank], "time")) for rank in fewer[:3]]
    return _asked(
        say(
            "The optimizer stepped {times} on {who}, {fewer}; all ranks ended with exit code 0.",
            times=counted(most, "time"),
            who=named(sorted(set(made) - set(fewer))),
            fewer=listed(less, by="; "),
        )
    )


def _lines(standings: Standings) -> Optional[Undecided]:
    """Tell of equal calls that met from lines which both ranks pass, if the job's source is not here to say whether they belong together."""
    mixed = first_mixed_calls(standings)
    if mixed is None:
        return None
    (one, ranks), (other, others) = mixed.calls
    if mixed.orders:
        because = say(
            "{who:capital} went over the names of a loop in different orders: at number {number} of the group, {call}{at} met for different names.",
            who=named(sorted((*ranks, *others))),
            number=mixed.number,
            call=one.op,
            at=at(as_site(one.site)),
        )
        return Undecided("calls-out-of-step", because, next=_NEXT_ORDER)
    if mixed.numbers:
        because = say(
            "{who:capital} {who:was|were} at {first} in {loop}, and {others} at {second}, when their "
            "{call}{at} met at number {number} of the group: what is added up there is looked up by numbers "
            "that the ranks do not share.",
            who=named(ranks),
            first=mixed.numbers[0],
            loop=left_sequence.shown_decision(mixed.deciding, say("a loop")),
            others=named(others),
            second=mixed.numbers[1],
            call=one.op,
            at=at(as_site(one.site)),
            number=mixed.number,
        )
        return Undecided("calls-out-of-step", because, next=_NEXT_NUMBERS)
    if mixed.chooses_compared:
        because = say(
            "{who:capital} and {others} took the two arms of {choice}: at number {number} of the group, "
            "{call} met for one of the two values on one side, and for the other value on the other side.",
            who=named(ranks),
            others=named(others),
            choice=left_sequence.shown_decision(mixed.deciding, say("one line")),
            number=mixed.number,
            call=one.op,
        )
        return Undecided("calls-out-of-step", because, next=_NEXT_VALUES)
    because = say(
        "{who:capital} made {call}{at}, and {others} made it{there}, at number {number} of the group; each of the lines is passed by both.",
        who=named(ranks),
        call=one.op,
        at=at(as_site(one.site)),
        others=named(others),
        there=at(as_site(other.site)),
        number=mixed.number,
    )
    return Undecided("calls-out-of-step", because, next=_NEXT_SOURCE)


def _threads(standings: Standings) -> Optional[Undecided]:
    """Tell of threads of a rank that were in collectives of one group at once: nothing orders them."""
    for rank in compared_ranks(standings)[:_MOST_RANKS]:
        calls = calls_at_once(standings.ranks[rank].records())
        if calls is not None:
            template = (
                "Two threads of rank {rank} were in calls of one group at once, {first} and {second}: which "
                "of them comes first is chance, and on another rank it may be the other."
            )
            first, second = (_described_call(call) for call in calls)
            because = say(template, rank=rank, first=first, second=second)
            return Undecided("calls-out-of-step", because, next=_NEXT_THREADS)
    return None


def _stand_in(standings: Standings, name: str, made: Dict[int, int]) -> bool:
    """Tell whether ranks of a group made the same collective at different lines."""
    of_members = [standings.ranks[rank].calls(name) for rank in _whole(standings, name) if rank in made]
    kept = [calls for calls in of_members if calls is not None]
    first = max((calls.first for calls in kept), default=0)
    last = min((calls.count for calls in kept), default=0)
    return any(_apart([calls.call(number) for calls in kept]) for number in range(first, last + 1))


def _apart(calls: Sequence[Optional[object]]) -> bool:
    return len({getattr(call, "site", None) for call in calls if call is not None}) > 1


def _asked(because: Text) -> Undecided:
    return Undecided("caught-failure", because, next=proof.NEXT_CAUGHT)
