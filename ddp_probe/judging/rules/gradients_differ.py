"""A library compares the gradients of the ranks after they were exchanged, and they differ."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP709",
    slug="gradients-differ",
    cause="silent_replica_divergence",
    title="The ranks have different gradients after the exchange: their models have diverged.",
    symptom="'Fatal error: gradients are inconsistent between workers' of fairseq, with the gradient's norm of each rank.",
    evidence=(
        "fairseq compares the norm of the gradients of all ranks before each step. It does not say since when they differ or why: a rank that "
        "skipped a batch (out of memory), parameters that the exchange left out, or cards of several generations."
    ),
    remedy=(
        "Look for a rank that printed that it skipped a batch for lack of memory, and lower max_tokens. Otherwise start with "
        "--ddp-backend=legacy_ddp (no_c10d in old versions), which exchanges the gradients of models whose parameters are not all used in each step. "
        "Then use cards of one kind."
    ),
    restart="unknown",  # Parameters or batches that are left out, or a card that computes wrongly.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?:Error: |: )(?:Fatal error: )?gradients are inconsistent between workers",
            says="fairseq finds that the gradients of the ranks differ after their exchange.",
            ranks=False,
        ),
    ),
)
