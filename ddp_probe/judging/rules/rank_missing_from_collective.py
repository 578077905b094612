"""A rank does not come to a collective in which the others wait: it is in another one, in a phase, or outside of any."""

from itertools import product
from typing import Iterator, List, Optional, Tuple, Union

from ddp_probe.judging import left_sequence
from ddp_probe.judging.ledgers import Standing, standings_of
from ddp_probe.judging.loop_end import UNEQUAL, exchanged_unequally, loop_end, parting_lines, unequal, waits_in_torch
from ddp_probe.judging.parted import absent, both_blamed, departed, doubt, evidence, explained, of_kind, only_waits, sequence_evidence, waiting
from ddp_probe.judging.rule import HIGH, MEDIUM, Finding, Rule, Undecided
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.shared.own_code import foreign, package
from ddp_probe.shared.schema import Site
from ddp_probe.standing.sequence import SequenceParting
from ddp_probe.standing.splits import MISSING, UNKNOWN, Split
from ddp_probe.standing.stalls import BACKWARD
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, command, counted, listed, named, place

_COMPARED = 3  # At most this many ranks of each side are compared.
_EVEN = say("Give all ranks the same number of batches: DistributedSampler, drop_last=True, or Join([model]) around the loop.")

RULE = Rule(
    id="DDP629",
    slug="rank-missing-from-collective",
    cause="rank_divergent_control_flow",
    title="A rank does not reach a collective in which the others wait.",
    symptom="The job hangs, or the ranks that wait give up with a timeout, which does not name the missing one.",
    evidence=(
        "The ledgers: most ranks of a group are in a collective that one rank has not begun; its ledger shows the call or the phase where it "
        "is, and its stacks show the line of the job's code."
    ),
    remedy="Look at the line where the missing rank is: let it make the same calls as the others, or remove the call from the others' path.",
    restart="unknown",  # A branch of the code, or a rank held up by its host or its data.
)


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Name the missing ranks, their position, and the ranks that wait."""
    split = of_kind(run, MISSING, UNKNOWN)
    if split is None or not only_waits(run):
        return
    if split.kind == UNKNOWN:
        yield _undecided(run, split)
        return
    left = split.sequence
    both = both_blamed(split)
    departure = departed(split)
    if both and not (left is not None and left.fewer):
        departure = say(" Each waits for the other; the logs do not show which of them is wrong.")
    by_loader = left is None or (left.made is not None and left.made.ends_loader)
    ended, batches = _out_of_batches(run, split) if by_loader else ([], 0)
    passes = 0 if ended or (left is not None and left.holds_back) else _unequal_passes(run, split)
    short = ended
    if ended:
        departure = say(
            " The DataLoader of {who} ended after {batches} batches, but that of the others has more.",
            who=named(ended),
            batches=batches,
        )
    elif passes:
        guilty, why = unequal(split.there, split.here)
        split, both = split._replace(blame=tuple(guilty)), bool(set(guilty) & set(split.here))
        departure = say(
            " All of them have begun {passes}: {why}.",
            passes=counted(passes, "backward pass", "backward passes"),
            why=why,
        )
    elif both:
        short, loop_ended = _out_of_the_loop(run, split)
        departure = loop_ended or departure
    if split.decided is not None and not ended and not passes:
        yield _by_decision(run, split, split.decided)
        return
    ways = _ways(run, split)
    parting = _parts(split, *ways) if ways is not None and not short else ""
    stands = not short and _stands(run, split)
    unknown = not short and not stands and bool(split.there) and all(_unknown_end(run, rank) for rank in split.there)
    no_last_line = say(" {who:capital} left no last line: it is not known whether it ended there.", who=named(split.there))
    remedy, cause = _remedy(run, split, ways), "rank_stopped_participating" if stands or unknown else ""
    if short:
        remedy, cause = _EVEN, "uneven_batches"
    elif passes:
        remedy = UNEQUAL
    yield RULE.found(
        ranks=short or split.blame,
        verdict=say(
            "{waiting:capital}; {absent}.{departure}{parting}{doubt}{lost}",
            waiting=waiting(run, split),
            absent=absent(run, split),
            departure=departure,
            parting=parting,
            doubt=doubt(run, split),
            lost=no_last_line if unknown else "",
        ),
        evidence=evidence(run, split),
        when=split.when,
        remedy=remedy,
        explains=explained(run),
        confidence=MEDIUM if unknown or (both and not ended) or _by_balance(left) else HIGH,
        cause=cause,
    )


def _by_balance(left: Optional[SequenceParting]) -> bool:
    """Tell whether a rank is blamed, and no majority shows it, as it lacks a backward pass for one of its forwards."""
    return left is not None and bool(left.fewer) and len(left.ranks) == len(left.others)


def _by_decision(run: Run, split: Split, left: SequenceParting) -> Finding:
    """Return the wait with the statement at which the ranks parted before it."""
    return RULE.found(
        ranks=split.blame,
        verdict=say(
            "{departure} {waiting:capital}; {absent}.{doubt}",
            departure=left_sequence.told(left),
            waiting=waiting(run, split),
            absent=absent(run, split),
            doubt=doubt(run, split),
        ),
        evidence=sequence_evidence(run, left, evidence(run, split)),
        when=split.when,
        change=left_sequence.change(left),
        explains=explained(run),
        confidence=HIGH if left.decision is not None and left.decision.is_sure else MEDIUM,
    )


def _stands(run: Run, split: Split) -> bool:
    """Tell whether the missing ranks are in no call of the group, but wait for data or stand at a line of the job."""
    those = [standings_of(run).ranks[rank] for rank in split.there]
    outside = [standing for standing in those if not standing.waits_for_data]
    return all(_is_free(standing) and not standing.in_backward and not waits_in_torch(standing) for standing in outside)


def _is_free(standing: Standing) -> bool:
    """Tell whether it was seen at a line of the job, or in native code that holds the GIL."""
    return standing.inside is None and (standing.own is not None or standing.holds_gil)


def _ways(run: Run, split: Split) -> Optional[Tuple[Site, Site]]:
    """Return the lines of one function at which the ways of a missing and a waiting rank part, if the finding does not name both as it is."""
    if not split.there:
        return None
    missing, waiting_rank = standings_of(run).ranks[split.there[0]], standings_of(run).ranks[split.here[0]]
    ways = parting_lines(missing, waiting_rank)
    sites = [standing.site for standing in (missing, waiting_rank)]
    if ways is None or [place(way) for way in ways] == [place(site) for site in sites]:
        return None
    # A framework's loop that calls the model and its backward shows nothing of the job; a job that is installed stays its own.
    packages = [package(site.file) for site in sites if site is not None]
    return None if foreign(ways[0].file) and (package(ways[0].file) or "?") not in packages else ways


def _parts(split: Split, missing: Site, waiting_line: Site) -> str:
    lines = {
        "there": named(split.there),
        "missing": place(missing),
        "here": named(split.here),
        "waiting": place(waiting_line),
    }
    if missing.function and not missing.function.startswith("<"):
        return say(
            " In {function} their ways part: {there} {there:is|are} at {missing}, and {here} at {waiting}.",
            function=missing.function,
            **lines,
        )
    return say(" There their ways part: {there} {there:is|are} at {missing}, and {here} at {waiting}.", **lines)


def _remedy(run: Run, split: Split, ways: Optional[Tuple[Site, Site]]) -> str:
    guilty, who = standings_of(run).ranks[split.there[0]], named(split.there)
    if guilty.waits_for_data:
        return say(
            "Look at what the dataset of {who} reads for this batch{where}: a file, a pipe, a lock, the network. "
            "If workers read it, num_workers=0 shows the line in the dataset, and DataLoader(…, timeout=300) raises "
            "if a worker returns nothing.",
            who=who,
            where=at(guilty.site),
        )
    if guilty.holds_gil and guilty.own is None:
        return say(
            "While it hangs: {command} shows the line at which {who} {who:is|are}, if py-spy is installed and may look. "
            "Native code that is called there does not give the GIL back: a regular expression that backtracks, "
            "a compiled extension, a lock in C.",
            command=command("attach", str(guilty.process.pid)),
            who=who,
        )
    if _stands(run, split):
        return say(
            "Find out what {who} {who:does|do}{where}, and why it takes this long or does not end: a loop, a lock, a file, the network.",
            who=who,
            where=at(guilty.site),
        )
    missing, waits_at = guilty.site, standings_of(run).ranks[split.here[0]].site
    if ways is not None:
        missing, waits_at = ways
    return say(
        "Compare the path of {there}{missing} with that of {here}{waiting}: all ranks need the same calls, and the same number of batches.",
        there=who,
        missing=at(missing),
        here=named(split.here),
        waiting=at(waits_at),
    )


def _unequal_passes(run: Run, split: Split) -> int:
    ranks = standings_of(run).ranks
    return exchanged_unequally([ranks[rank] for rank in split.there], [ranks[rank] for rank in split.here])


def _out_of_batches(run: Run, split: Split) -> Tuple[List[int], int]:
    """Return the side whose DataLoaders ended when the other side's gave a batch, and how many it had taken.

    The ledger counts over all loaders and epochs together: only what all got when they asked for the same time can be compared.
    """
    ranks = standings_of(run).ranks
    for short, long in ((split.here, split.there), (split.there, split.here)):
        ended = {ranks[rank].batches() for rank in short}
        going_on = {ranks[rank].batches() for rank in long}
        taken = {count for count, _ in ended}
        if len(taken) == 1 and all(over for _, over in ended) and going_on == {(min(taken) + 1, False)}:
            return list(short), min(taken)
    return [], 0


def _out_of_the_loop(run: Run, split: Split) -> Tuple[List[int], str]:
    """Return the side that has left the loop in which the other side is in backward, after fewer backward passes, and say so."""
    for gone, still in ((split.here, split.there), (split.there, split.here)):
        ranks = standings_of(run).ranks
        passes = max(ranks[rank].times(BACKWARD) for rank in gone)
        if not all(ranks[rank].in_backward and ranks[rank].times(BACKWARD) > passes for rank in still):
            continue
        pairs = product(still[:_COMPARED], gone[:_COMPARED])
        ends = [loop_end(ranks[inside], ranks[outside]) for inside, outside in pairs]
        loop = ends[0].loop if ends[0] is not None and None not in ends else None
        if loop is not None:
            return list(gone), say(
                " The loop{where} has ended on {gone}, after {passes}; {still} {still:is|are} still in it.",
                where=at(loop),
                gone=named(gone),
                passes=counted(passes, "backward pass", "backward passes"),
                still=named(still),
            )
    return [], ""


def _undecided(run: Run, split: Split) -> Undecided:
    parts = [waiting(run, split)]
    parts += [absent(run, split)] if split.there else []
    if not split.unknown and not split.is_sure:
        parts.append(say("it is not known whether they had waited long when they were ended"))
    return RULE.undecided(
        say("{parts:capital}.{doubt}", parts=listed(parts, by="; "), doubt=doubt(run, split)),
        explains=explained(run),
        then=say(
            "Look where {who} {who:is|are}: {stacks}, or {look}, while it hangs.",
            who=named(split.unknown or split.there),
            stacks=command("stacks"),
            look=command("attach"),
        ),
    )


def _unknown_end(run: Run, rank: int) -> bool:
    """Tell whether nothing says that a rank was still there: no last line, no word of its launcher or of its watcher, and it does not run."""
    process, death = standings_of(run).ranks[rank].process, run.death(rank)
    is_cut = bool(process.holes) or process.start is None
    is_told = death is not None and not (death.signal and is_cut)
    return process.ended is None and rank not in run.running and not is_told and not process.count(schema.HangSuspected)
