"""A rank computes while the others wait for it, as looks from outside show."""

from typing import Iterator

from ddp_probe.judging.looks import INIT, LOADER, found, others, waiting
from ddp_probe.judging.rule import LOW, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
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
    severity=WARNING,
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that compute, and how much."""
    inside = waiting(run)
    guilty = [one for one in others(run) if one.spins and one.operation != LOADER]
    if not guilty or all(one.operation == INIT for one in inside):
        return
    same = all(one.still for one in guilty)
    told = ", with %d%% of a core%s" % (round(100 * max(one.load for one in guilty)), " at the same line in each look" if same else "")
    yield found(
        RULE,
        guilty,
        inside,
        told,
        remedy="Look again in a minute. If %s is at the same line then, look at the loop there. If it evaluates or saves, share that work among all "
        "ranks, or give the group more time: init_process_group(..., timeout=datetime.timedelta(hours=2))." % named([one.rank for one in guilty]),
        confidence=LOW,
    )
