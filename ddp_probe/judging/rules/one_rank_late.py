"""One rank, or one host, comes last again and again, and the others wait for it."""

from typing import Iterator, List

from ddp_probe.judging import late_ranks
from ddp_probe.judging.late_ranks import WaitSite
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Rule, first_of
from ddp_probe.reading.model import Run
from ddp_probe.standing.lateness import LateRanks, milliseconds
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import counted, named

RULE = Rule(
    id="DDP653",
    slug="one-rank-late",
    cause="one_rank_late",
    title="One rank is last in step after step, and the others wait for it.",
    symptom="The job is slow. Most ranks wait in each step, often with idle cards, and nothing fails.",
    evidence=(
        "The ledgers: in the latest steps one rank's own time, which is the step without the backward pass and without its collective calls, "
        "is the longest far more often than chance explains, and longer by more than the other ranks differ among themselves; and the others "
        "wait about that much longer than it does. Only ranks that do the same work are compared: stages of a pipeline, which send to each "
        "other, are not."
    ),
    remedy="Compare the rank's host with the others: the load, the clock and the temperature of its card, its disk, and the size of its batches.",
    restart="unknown",  # The rank's host, or its share of the data.
    severity=WARNING,
)

_LEAST_LOST = 100_000  # Microseconds that the others wait in the whole run; less is not worth a change.
_REMEDIES = {
    "dataloader": say(
        "Find out why data comes late there: compare the disk or the network path of the data set, num_workers, and the load of the CPU "
        "with those of the other ranks."
    ),
    "forward": say(
        "Compare the card with the others (clock, temperature, other processes on it) and the CPU (load, number of threads), and compare the "
        "size of the batches: a rank with longer samples is slower."
    ),
    "saving": say("Save less often, or let each rank save a part: the others wait meanwhile."),
    "evaluating": say("Share the evaluation among all ranks: the others wait meanwhile."),
}


def check(run: Run) -> Iterator[Finding]:
    """Name the late ranks or their host, how often they came last, by how much, and in which part of a step."""
    lateness = late_ranks.late(run)
    if lateness is None or _lost(run, lateness) < _LEAST_LOST:
        return
    yield RULE.found(
        ranks=lateness.ranks,
        verdict=joined([_how_often(run, lateness), _where(lateness)]),
        evidence=[*first_of([_step(run, rank, lateness) for rank in lateness.ranks]), *_sums(run, lateness)],
        when=max(standings_of(run).ranks[rank].moved() for rank in lateness.ranks),
        remedy=_REMEDIES.get(lateness.part, ""),
    )


def _lost(run: Run, lateness: LateRanks) -> int:
    """Return for how long the others have waited in all steps of the run, by the latest ones."""
    steps = max(standings_of(run).ranks[rank].ledger.steps.numbers[-1] for rank in lateness.ranks)
    return lateness.waited * steps


def _how_often(run: Run, lateness: LateRanks) -> Text:
    template = (
        "{who:capital} came last in {last_in} of the latest {steps} steps, typically {behind} after the others, "
        "which therefore wait for {waited} of each step ({share} %)."
    )
    if late_ranks.host(run, lateness):
        template = (
            "{who:capital} is late: its ranks came last in {last_in} of the latest {steps} steps, typically {behind} after the others, "
            "which therefore wait for {waited} of each step ({share} %)."
        )
    return say(
        template,
        who=late_ranks.who(run, lateness),
        last_in=lateness.last_in,
        steps=lateness.steps,
        behind=milliseconds(lateness.behind),
        waited=milliseconds(lateness.waited),
        share=round(100 * lateness.waited / max(lateness.took, 1)),
    )


def _where(lateness: LateRanks) -> Text:
    return say(
        "{who:It spends|They spend} the time in {part}: {own} a step, against {usual} on the others.",
        who=named(lateness.ranks),
        part=lateness.part_in_words,
        own=milliseconds(lateness.usual + lateness.more),
        usual=milliseconds(lateness.usual),
    )


def _step(run: Run, rank: int, lateness: LateRanks) -> Evidence:
    standing = standings_of(run).ranks[rank]
    text = say(
        "{who} {who:is|are} late by {behind} of {step}; {others} wait",
        who=named([rank]),
        behind=milliseconds(lateness.behind),
        step=milliseconds(lateness.took),
        others=named(lateness.others, 4),
    )
    return Evidence(standing.ledger.path, 1, standing.site, text)


def _sums(run: Run, lateness: LateRanks) -> List[Evidence]:
    """Return what the sums say of the whole run: the line at which most time was waited, and where these ranks came last in the mean."""
    evidence = [_wait(run, lateness, line) for line in list(late_ranks.sites(run))[:1]]
    for line, calls, behind in late_ranks.by_sums(run, lateness):
        late = milliseconds(int(behind * 1e6))
        if late != "0 ms":
            text = say(
                "on average over all {calls} of {op}, {who} came {late} after the others",
                calls=counted(calls, "call"),
                op=line.op,
                who=named(lateness.ranks),
                late=late,
            )
            evidence.append(_at(run, lateness, line, text))
    return evidence[:3]


def _wait(run: Run, lateness: LateRanks, line: WaitSite) -> Evidence:
    times = late_ranks.sites(run)[line]
    most = max(times, key=lambda rank: times[rank].inside)
    wait = times[most]
    text = say(
        "{who} spent {seconds:.3g} s in {calls} of {op}, {longest:.3g} s in the longest",
        who=named([most]),
        seconds=wait.inside,
        calls=counted(wait.calls, "call"),
        op=line.op,
        longest=wait.longest,
    )
    return _at(run, lateness, line, text)


def _at(run: Run, lateness: LateRanks, line: WaitSite, text: Text) -> Evidence:
    return Evidence(standings_of(run).ranks[lateness.ranks[0]].ledger.path, 1, as_site(line.site), text)
