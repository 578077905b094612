"""The ranks make different calls at one number of their group: another operation, size, data type or root."""

from typing import Iterator, List

from ddp_probe.judging import left_sequence
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.parted import (
    aborted,
    both_blamed,
    departed,
    doubt,
    evidence,
    explained,
    group,
    in_order,
    of_kind,
    sequence_evidence,
    sides,
    under_if,
)
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import DIFFER, Split, record
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, named

_COMPARED = 3  # Ranks of each side whose threads are looked at.
_GROUP_OF_ITS_OWN = say(
    "Give the thread its own group: create it once on all ranks, before the loop, with torch.distributed.new_group(), and "
    "pass it on, as in torch.distributed.checkpoint.async_save(…, process_group=group). Two threads cannot share a group: "
    "their calls have no common order."
)
_WORDS = (
    ("op", say("operation")),
    ("elements", say("number of elements")),
    ("dtype", say("data type")),
    ("root", say("root")),
)
RULE = Rule(
    id="DDP627",
    slug="collectives-differ",
    cause="rank_divergent_control_flow",
    title="The ranks make different torch.distributed calls at the same number of their group.",
    symptom="A hang, an abort because of a length, or wrong numbers without any error: backends pair calls by their order, whatever they are.",
    evidence=(
        "The ledgers: at the same number of a group, the ranks recorded different operations, sizes, data types or roots. The rank that "
        "differs from the majority is named."
    ),
    remedy="Let all ranks make the same calls in the same order: decide on one rank, broadcast the decision, and take the branch on all.",
    restart="no",  # The ranks make the same calls again.
)


def check(run: Run) -> Iterator[Finding]:
    """Compare what the ledgers hold of each number of each group."""
    parting = of_kind(run, DIFFER)
    if parting is None:
        return
    both = not parting.branch and parting.departure is None and both_blamed(parting)
    beside = _in_a_thread(run, parting)
    left = parting.decided if not parting.branch and not beside else None
    stand = say(
        "{sides}: this is collective number {number}{group}.",
        sides=sides(parting),
        number=parting.number,
        group=group(run, parting),
    )
    why = _why(parting, both, beside)
    if beside or parting.branch:
        verdict: str = say("{stand}{why}", stand=stand, why=why)
    else:
        verdict = in_order(parting, stand, why)
    yield RULE.found(
        ranks=parting.blame,
        verdict=say("{parting}{doubt}", parting=verdict, doubt=doubt(run, parting)),
        evidence=sequence_evidence(run, left, evidence(run, parting)),
        when=parting.when,
        remedy=_GROUP_OF_ITS_OWN if beside else _remedy(parting),
        change=left_sequence.change(left),
        explains=[*explained(run), *aborted(run)],
        confidence=MEDIUM if both or parting.branch else "high",
        cause="rank0_only_collective" if parting.branch and parting.blame == (0,) else "",
    )


def _in_a_thread(run: Run, parting: Split) -> List[int]:
    """Return the ranks whose call is made by another thread than the main one, if that of others is not."""
    standings, group = standings_of(run).ranks, parting.group.id if parting.group is not None else ""
    beside, seen = set(), set()
    for _, ranks in parting.calls:
        for rank in ranks[:_COMPARED]:
            seen.add(rank)
            call = record(standings[rank], group, parting.number)
            if call is not None and call.in_side_thread:
                beside.add(rank)
    return sorted(beside) if len(beside) < len(seen) else []


def _why(parting: Split, both: bool, beside: List[int]) -> str:
    if beside:
        return say(
            " The call of {who} is made by another thread, which shares the group with the training.",
            who=named(beside),
        )
    if parting.branch:
        return under_if(parting)
    return say(" The logs do not show which of them is wrong.") if both else departed(parting)


def _remedy(parting: Split) -> Text:
    if parting.branch:
        call = next(call for call, ranks in parting.calls if set(ranks) & set(parting.blame))
        return say(
            "Move the call{where} out of the 'if' in line {line}, so that all ranks make it, or remove it.",
            where=at(as_site(call.site)),
            line=parting.branch,
        )
    all_blamed = set(parting.here) <= set(parting.blame)
    if len({call.site for call, _ in parting.calls}) == 1:
        return _same_arguments(parting, all_blamed)
    places = [at(as_site(call.site)) for call, _ in parting.calls]
    if all_blamed:
        return say(
            "Let all ranks make the same call, that{first} or that{second}: decide on one rank, broadcast the decision, and take the branch on all.",
            first=places[0],
            second=places[1],
        )
    return say(
        "Let {who} make the same call{where} as the others: decide on one rank, broadcast the decision, and take the branch on all.",
        who=named(parting.blame),
        where=places[-1],
    )


def _same_arguments(parting: Split, all_blamed: bool) -> Text:
    call = parting.calls[0][0]
    what = listed(_unlike(parting), by=" and ")
    if all_blamed:
        return say(
            "Let all ranks call {call}{where} with the same {what}.",
            call=call.op,
            where=at(as_site(call.site)),
            what=what,
        )
    return say(
        "Let {who} call {call}{where} with the same {what} as the others.",
        who=named(parting.blame),
        call=call.op,
        where=at(as_site(call.site)),
        what=what,
    )


def _unlike(parting: Split) -> List[Text]:
    """Name what is not the same on all ranks."""
    return [word for name, word in _WORDS if len({getattr(call, name) for call, _ in parting.calls}) > 1]
