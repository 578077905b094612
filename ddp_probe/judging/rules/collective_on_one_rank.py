"""One rank calls a collective that the others never call."""

from typing import Iterator

from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import told
from ddp_probe.judging.words import place
from ddp_probe.reading.model import Run

RULE = Rule(
    id="DDP609",
    slug="collective-on-one-rank",
    cause="rank0_only_collective",
    title="Rank 0 calls a collective that the others never call.",
    symptom="The job hangs: rank 0 is in a collective under 'if rank == 0' (logging, saving, evaluating), the others are elsewhere.",
    evidence="NCCL's desync report (TORCH_NCCL_DESYNC_DEBUG=1) names the ranks that joined. A timeout alone does not: it names those that wait.",
    remedy="Move the collective out of the branch: all ranks call it, and only rank 0 prints or writes the result. "
    "state_dict() of sharded models, reduce_mean in a logging hook, barrier() and SyncBatchNorm in evaluation are collectives too.",
    needs=("process.end",),
    printed=(
        Printed(
            r"\[(?P<rank>0)\] joined but didn't finish collective #(?P<number>\d+)[^\n]*\s+\[1\b[^\]]*\] finished collective #\d+, but didn't join",
            says="Rank {rank} alone is in collective number {number}; the others never joined it.",
        ),
        Printed(
            r"\[1\b[^\]]*\] finished collective #\d+, but didn't join collective #(?P<number>\d+)[^\n]*\s+\[(?P<rank>0)\] joined but didn't finish",
            says="Rank {rank} alone is in collective number {number}; the others never joined it.",
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find exceptions that carry the report."""
    found = list(told(RULE, run))
    if not found:
        return
    failure = found[0].failure
    yield RULE.found(
        ranks=[0],
        verdict="%s It was at %s." % (found[0].printed.says.format(**found[0].found.groupdict()), place(failure.site)),
        evidence=first_of([failed(match.failure) for match in found]),
        when=failure.when,
        explains=[match.failure for match in found],
    )
