"""A rank waits for its DataLoader, as looks from outside show."""

from typing import Iterator

from ddp_probe.judging.looks import IDLE, LOADER, found, stances, waiting
from ddp_probe.judging.rule import ERROR, LOW, MEDIUM, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.words import counted

RULE = Rule(
    id="DDP687",
    slug="seen-waiting-for-data",
    cause="rank_stopped_participating",
    title="A rank waits for its DataLoader, and gets no batch.",
    symptom="The job hangs or crawls; cards are idle; the other ranks wait in a collective.",
    evidence="The stack is in torch's DataLoader, at the same line in each look; the state and the CPU time of its workers show whether they read.",
    remedy=(
        "Look at what the workers do: a file system that does not answer, a lock, a full /dev/shm. num_workers=0 shows the line in the "
        "dataset, and DataLoader(..., timeout=300) raises if a worker returns nothing."
    ),
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that wait for data; it is a warning if their workers compute."""
    guilty = [one for one in stances(run) if one.operation == LOADER and one.stands]
    if not guilty:
        return
    compute = all(one.children_load > IDLE for one in guilty)
    states = sorted({text.partition(" ")[0] for one in guilty for text in one.last.children.values()})
    count = max(len(one.last.children) for one in guilty)
    told = " (%s in state %s, which %s)" % (
        counted(count, "process", "processes") + " below it",
        ", ".join(states),
        "compute" if compute else "use no CPU",
    )
    yield found(
        RULE,
        guilty,
        waiting(run),
        told if count else "",
        confidence=LOW if compute else MEDIUM,
        severity=WARNING if compute else ERROR,
    )
