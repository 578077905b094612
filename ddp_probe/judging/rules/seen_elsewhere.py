"""A rank is at another place than the others, which wait for it, as looks from outside show."""

from typing import Iterator

from ddp_probe.judging.looks import INIT, LOADER, found, others, waiting
from ddp_probe.judging.rule import ERROR, LOW, MEDIUM, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

RULE = Rule(
    id="DDP693",
    slug="seen-elsewhere",
    cause="rank_divergent_control_flow",
    title="A rank is elsewhere while the others wait for it.",
    symptom="The job hangs: most ranks are in a collective, and one is not.",
    evidence=(
        "The stacks: the others are in a call of torch.distributed in each look, and this rank is in none and uses no CPU. A rank that moves "
        "or is woken meanwhile, whose processes compute, whose open file moves on, or that evaluates or saves, may still arrive: then this is "
        "a warning."
    ),
    remedy="Look at the line where the rank is: what it waits for there, or which branch has led it past the others' call.",
    restart="unknown",  # What the rank waits for decides.
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks in no collective, their line, and who waits."""
    inside = waiting(run)
    guilty = [one for one in others(run) if not one.spins and one.operation != LOADER]
    if not guilty or all(one.operation == INIT for one in inside):
        return
    why = next((stance.may_come() for stance in guilty if stance.may_come()), "")
    yield found(
        RULE,
        guilty,
        inside,
        say(" ({why})", why=why) if why else say(" and uses no CPU"),
        remedy=say(
            "Look at the line where {who} {who:is|are}: what {who:it waits|they wait} for there, "
            "or which branch led {who:it|them} past the others' call.",
            who=named([stance.rank for stance in guilty]),
        ),
        confidence=LOW if why else MEDIUM,
        severity=WARNING if why else ERROR,
    )
