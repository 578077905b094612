"""A rank evaluates, saves or loads while the others wait for it in a collective."""

from typing import Iterator

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import absent, doubt, evidence, explained, of_kind, only_waits, waiting
from ddp_probe.judging.rule import ERROR, HIGH, MEDIUM, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import WORKING
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import clock, named

RULE = Rule(
    id="DDP637",
    slug="rank-works-while-others-wait",
    cause="rank0_long_work_timeout",
    title="A rank evaluates, saves or loads while the others wait for it.",
    symptom="The other ranks wait in a collective, and give up with a timeout if the work takes longer than that.",
    evidence=(
        "The ledgers: the missing rank is in a phase that is known to take long, or makes progress while the others wait. Or its stacks: it is "
        "in a function that evaluates or saves, judging by its name, or it was at different lines, or it waits while processes that it has "
        "started compute. While it runs this is a warning: it may still arrive."
    ),
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
    restart="no",  # The work takes as long again.
    severity=WARNING,
    fix="timeout",
)


def check(run: Run) -> Iterator[Finding]:
    """Warn while it works; once the others have given up, it is what ended the job."""
    split = of_kind(run, WORKING)
    if split is None or not only_waits(run):
        return
    lost = explained(run)
    there = [standings_of(run).ranks[rank] for rank in split.there]
    loops = [one for one in there if one.own is not None and not one.own.task]
    moving = [one for one in there if not one.is_working]
    moved = ""
    if moving:
        moved = say(
            " {who:capital} still moved at {when}.",
            who=named([standing.rank for standing in moving]),
            when=clock(moving[0].moved()),
        )
    share = say(
        "Share the work of {who} among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
        who=named(split.there),
    )
    in_a_loop = say("If that line is in a loop that waits for something, look at what it waits for.") if loops else ""
    yield RULE.found(
        ranks=split.blame,
        verdict=say(
            "{absent:capital}; {waiting}.{moved}{doubt}",
            absent=absent(run, split),
            waiting=waiting(run, split),
            moved=moved,
            doubt=doubt(run, split),
        ),
        evidence=evidence(run, split),
        when=split.when,
        remedy=joined([share, in_a_loop]),
        explains=lost,
        severity=ERROR if lost else WARNING,
        confidence=MEDIUM if loops or moving else HIGH,
    )
