"""A rank waits for its DataLoader, as looks from outside show."""

from typing import Iterator, List, Set

from ddp_probe.judging.looks import IDLE, LOADER, Stance, found, stances, waiting
from ddp_probe.judging.rule import ERROR, LOW, MEDIUM, WARNING, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import counted, listed

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
    restart="unknown",  # A worker stuck in the code, or a file system that was slow.
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that wait for data; it is a warning if their workers compute."""
    guilty = [one for one in stances(run) if one.operation == LOADER and one.stands]
    if not guilty:
        return
    compute = all(stance.children_load > IDLE for stance in guilty)
    yield found(
        RULE,
        guilty,
        waiting(run),
        _below(guilty, compute),
        confidence=LOW if compute else MEDIUM,
        severity=WARNING if compute else ERROR,
    )


def _below(guilty: List[Stance], compute: bool) -> str:
    """Say what the processes below these ranks do; nothing if there are none."""
    count = max(len(stance.last.children) for stance in guilty)
    letters: Set[str] = set()
    for stance in guilty:
        letters.update(text.partition(" ")[0] for text in stance.last.children.values())
    processes, states = counted(count, "process", "processes"), listed(sorted(letters))
    if not count:
        return ""
    if compute:
        return say(" ({processes} below it in state {states}, which compute)", processes=processes, states=states)
    return say(" ({processes} below it in state {states}, which use no CPU)", processes=processes, states=states)
