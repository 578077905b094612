"""One rank, or one host, comes last again and again, and the others wait for it."""

from typing import Iterator, List

from ddp_probe.judging import late_ranks
from ddp_probe.judging.late_ranks import WaitSite
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Rule, first_of
from ddp_probe.reading.model import Run
from ddp_probe.standing.lateness import LateRanks, milliseconds
from ddp_probe.wording.words import by_number, capital, counted, named

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
    severity=WARNING,
)

_REMEDIES = {
    "dataloader": "Find out why data comes late there: compare the disk or the network path of the data set, num_workers, and the load of the CPU "
    "with those of the other ranks.",
    "forward": "Compare the card with the others (clock, temperature, other processes on it) and the CPU (load, number of threads), and compare the "
    "size of the batches: a rank with longer samples is slower.",
    "saving": "Save less often, or let each rank save a part: the others wait meanwhile.",
    "evaluating": "Share the evaluation among all ranks: the others wait meanwhile.",
}


def check(run: Run) -> Iterator[Finding]:
    """Name the late ranks or their host, how often they came last, by how much, and in which part of a step."""
    found = late_ranks.late(run)
    if found is None:
        return
    yield RULE.found(
        ranks=found.ranks,
        verdict="%s %s last in %d of the latest %d steps, typically %s after the others, which therefore wait for %s of each step (%s). %s the "
        "time in %s: %s a step, against %s on the others."
        % (
            capital(late_ranks.who(run, found)),
            "came" if not late_ranks.host(run, found) else "is late: its ranks came",
            found.last_in,
            found.steps,
            milliseconds(found.behind),
            milliseconds(found.waited),
            "%d %%" % round(100 * found.waited / max(found.took, 1)),
            by_number(found.ranks, "It spends", "They spend"),
            found.part_in_words,
            milliseconds(found.usual + found.more),
            milliseconds(found.usual),
        ),
        evidence=[*first_of([_step(run, rank, found) for rank in found.ranks]), *_sums(run, found)],
        when=max(standings_of(run).ranks[rank].moved() for rank in found.ranks),
        remedy=_REMEDIES.get(found.part, RULE.remedy),
    )


def _step(run: Run, rank: int, found: LateRanks) -> Evidence:
    standing = standings_of(run).ranks[rank]
    text = "%s is late by %s of %s; %s wait" % (named([rank]), milliseconds(found.behind), milliseconds(found.took), named(found.others, 4))
    return Evidence(standing.ledger.path, 1, standing.site, text)


def _sums(run: Run, found: LateRanks) -> List[Evidence]:
    """Return what the sums say of the whole run: the line at which most time was waited, and where these ranks came last in the mean."""
    told = [_wait(run, found, line) for line in list(late_ranks.sites(run))[:1]]
    told += [
        _at(run, found, line, "on average over all %s of %s, %s came %s after the others" % (counted(calls, "call"), line.op, named(found.ranks), ms))
        for line, calls, behind in late_ranks.by_sums(run, found)
        for ms in [milliseconds(int(behind * 1e6))]
        if ms != "0 ms"
    ]
    return told[:3]


def _wait(run: Run, found: LateRanks, line: WaitSite) -> Evidence:
    times = late_ranks.sites(run)[line]
    most = max(times, key=lambda rank: times[rank].inside)
    one = times[most]
    text = "%s spent %.3g s in %s of %s, %.3g s in the longest" % (named([most]), one.inside, counted(one.calls, "call"), line.op, one.longest)
    return _at(run, found, line, text)


def _at(run: Run, found: LateRanks, line: WaitSite, text: str) -> Evidence:
    return Evidence(standings_of(run).ranks[found.ranks[0]].ledger.path, 1, as_site(line.site), text)
