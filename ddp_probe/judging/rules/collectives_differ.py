"""The ranks make different calls at one number of their group: another operation, size, data type or root."""

from typing import Iterator, List

from ddp_probe.judging import left_sequence
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.parted import aborted, both_blamed, departed, doubt, evidence, explained, group, in_order, of_kind, sequence_evidence, sides
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import DIFFER, Split, record
from ddp_probe.wording.words import at, named

_COMPARED = 3  # Ranks of each side whose threads are looked at.
_GROUP_OF_ITS_OWN = (
    "Give the thread its own group: create it once on all ranks, before the loop, with torch.distributed.new_group(), and pass it on, as in "
    "torch.distributed.checkpoint.async_save(…, process_group=group). Two threads cannot share a group: their calls have no common order."
)
_WORDS = (("op", "operation"), ("elements", "number of elements"), ("dtype", "data type"), ("root", "root"))
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
)


def check(run: Run) -> Iterator[Finding]:
    """Compare what the ledgers hold of each number of each group."""
    found = of_kind(run, DIFFER)
    if found is None:
        return
    both = not found.branch and found.departure is None and both_blamed(found)
    told = " The logs do not show which of them is wrong." if both else departed(found)
    if found.branch:
        told = " The call of %s is under the 'if' in line %d, whose branch the others do not take." % (named(found.blame), found.branch)
    beside = _in_a_thread(run, found)
    if beside:
        told = " The call of %s is made by another thread, which shares the group with the training." % named(beside)
    left = found.decided if not found.branch and not beside else None
    place = "%s: this is collective number %d%s." % (sides(found), found.number, group(run, found))
    yield RULE.found(
        ranks=found.blame,
        verdict=(place + told if beside or found.branch else in_order(found, place, told)) + doubt(run, found),
        evidence=sequence_evidence(run, left, evidence(run, found)),
        when=found.when,
        remedy=_GROUP_OF_ITS_OWN if beside else _remedy(found),
        change=left_sequence.change(left),
        explains=[*explained(run), *aborted(run)],
        confidence=MEDIUM if both or found.branch else "high",
        cause="rank0_only_collective" if found.branch and found.blame == (0,) else "",
    )


def _in_a_thread(run: Run, found: Split) -> List[int]:
    """Return the ranks whose call is made by another thread than the main one, if that of others is not."""
    standings, group = standings_of(run).ranks, found.group.id if found.group is not None else ""
    known = {rank: record(standings[rank], group, found.number) for _, ranks in found.calls for rank in ranks[:_COMPARED]}
    beside = [rank for rank, one in known.items() if one is not None and one.in_side_thread]
    return sorted(beside) if len(beside) < len(known) else []


def _remedy(found: Split) -> str:
    if found.branch:
        call = next(call for call, ranks in found.calls if set(ranks) & set(found.blame))
        return "Move the call%s out of the 'if' in line %d, so that all ranks make it, or remove it." % (at(as_site(call.site)), found.branch)
    both = set(found.here) <= set(found.blame)
    if len({call.site for call, _ in found.calls}) == 1:
        call = found.calls[0][0]
        who, others = ("all ranks", "") if both else (named(found.blame), " as the others")
        return "Let %s call %s%s with the same %s%s." % (who, call.op, at(as_site(call.site)), " and ".join(_unlike(found)), others)
    who, others = ("all ranks", ", that%s or that%s") if both else (named(found.blame), "%s as the others")
    places = [at(as_site(call.site)) for call, _ in found.calls]
    which = others % (tuple(places[:2]) if both else places[-1])
    return "Let %s make the same call%s: decide on one rank, broadcast the decision, and take the branch on all." % (who, which)


def _unlike(found: Split) -> List[str]:
    """Name what is not the same on all ranks."""
    return [word for name, word in _WORDS if len({getattr(call, name) for call, _ in found.calls}) > 1]
