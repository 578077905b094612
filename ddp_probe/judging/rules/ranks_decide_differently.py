"""A rank left the sequence of calls and passes that all ranks share, because a statement of the job decided otherwise on it."""

from typing import Iterator

from ddp_probe.judging import decided_values, left_sequence
from ddp_probe.judging.parted import aborted, doubt, evidence, explained, of_kind, only_waits, sequence_evidence
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import DECIDED
from ddp_probe.wording.text import say

RULE = Rule(
    id="DDP602",
    slug="ranks-decide-differently",
    cause="rank_divergent_control_flow",
    title="A branch of the job was taken on some ranks and not on others.",
    symptom="The job hangs, times out or aborts in a collective that has nothing to do with it, often many steps later.",
    evidence=(
        "The ledgers hold each rank's calls, forward and backward passes, optimizer steps and batches in one sequence. The first entry at which the "
        "ranks differ, and the job's source between that and the entry before, name the statement."
    ),
    remedy="Let all ranks take the same branch: all_reduce what decides, or decide on one rank and broadcast the decision.",
    restart="no",  # The same branch is taken on some ranks again.
)


def check(run: Run) -> Iterator[Finding]:
    """Name who left, after which entry, and the statement that decided."""
    split = of_kind(run, DECIDED)
    left = split.sequence if split is not None else None
    if split is None or left is None or not only_waits(run):
        return
    yield RULE.found(
        ranks=split.blame,
        verdict=say("{departure}{doubt}", departure=left_sequence.told(left), doubt=doubt(run, split)),
        evidence=sequence_evidence(run, left, evidence(run, split) if split.here else []),
        when=split.when,
        change=[*left_sequence.change(left), *decided_values.watch_it(run, left)],
        explains=[*explained(run), *aborted(run)],
        confidence="high" if left.is_sure and (left.decision is None or left.decision.is_sure) else MEDIUM,
        cause="uneven_batches" if left.made is not None and left.made.ends_loader else "",
    )
