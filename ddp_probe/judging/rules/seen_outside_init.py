"""Ranks wait in init_process_group, and one is elsewhere, as looks from outside show."""

from typing import Iterator

from ddp_probe.judging.looks import INIT, found, others, waiting
from ddp_probe.judging.rule import ERROR, LOW, MEDIUM, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

RULE = Rule(
    id="DDP685",
    slug="seen-outside-init",
    cause="rank_divergent_control_flow",
    title="Some ranks are not in init_process_group, in which the others wait, as looks from outside show.",
    symptom="The job hangs at its start; all processes are there.",
    evidence=(
        "The stacks: most ranks are in init_process_group in each look, the others at another line. A rank that computes or imports may still arrive."
    ),
    remedy="Look at what the missing rank does before init_process_group: a download, a lock, an input, a branch that skips the call.",
    restart="unknown",  # A download or a lock that was slow, or a branch that skips the call.
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks outside, if all that wait do so in init_process_group."""
    inside, guilty = waiting(run), others(run)
    if not guilty or any(one.operation != INIT for one in inside):
        return
    may_come = any(one.may_come() for one in guilty)
    yield found(
        RULE,
        guilty,
        inside,
        remedy=say(
            "Look at what {who} {who:does|do} before init_process_group: a download, a lock, an input, or a branch that skips the call.",
            who=named([stance.rank for stance in guilty]),
        ),
        confidence=LOW if may_come else MEDIUM,
        severity=WARNING if may_come else ERROR,
    )
