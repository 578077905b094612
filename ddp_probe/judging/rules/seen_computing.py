"""A rank computes while the others wait for it, as looks from outside show."""

from typing import Iterator

from ddp_probe.judging.looks import INIT, LOADER, found, others, waiting
from ddp_probe.judging.rule import LOW, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

RULE = Rule(
    id="DDP691",
    slug="seen-computing",
    cause="rank0_long_work_timeout",
    title="A rank computes, or spins, while the others wait for it.",
    symptom="The other ranks wait in a collective; top shows one rank at 100 % of a core.",
    evidence=(
        "The CPU time of the process between looks, and its stacks: at one line in each look it may spin, at several it works. Both may end, so "
        "this is a warning."
    ),
    remedy="Look again in a minute. At the same line: look at the loop there. Else share the work among all ranks, or raise the group's timeout.",
    restart="unknown",  # Long work, or a loop that never ends.
    severity=WARNING,
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that compute, and how much."""
    inside = waiting(run)
    guilty = [one for one in others(run) if one.spins and one.operation != LOADER]
    if not guilty or all(one.operation == INIT for one in inside):
        return
    percent = round(100 * max(stance.load for stance in guilty))
    how = say(", with {percent}% of a core", percent=percent)
    if all(stance.still for stance in guilty):
        how = say(", with {percent}% of a core at the same line in each look", percent=percent)
    yield found(
        RULE,
        guilty,
        inside,
        how,
        remedy=say(
            "Look again in a minute. If {who} {who:is|are} at the same line then, look at the loop there. If it evaluates or "
            "saves, share that work among all ranks, or give the group more time: "
            "init_process_group(..., timeout=datetime.timedelta(hours=2)).",
            who=named([stance.rank for stance in guilty]),
        ),
        confidence=LOW,
    )
