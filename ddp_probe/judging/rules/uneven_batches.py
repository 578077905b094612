"""Some ranks have fewer batches than others: the last ranks wait for gradients that no rank sends."""

from typing import Iterator

from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import told
from ddp_probe.judging.words import place
from ddp_probe.reading.model import Run

_TIMEOUT = r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (?:recv|send) operation|[Cc]ollective operation timeout"

_GATHER = r"OpType=(?P<op>_?ALLGATHER(?:_BASE)?|GATHER), TensorShape=\["

RULE = Rule(
    id="DDP611",
    slug="uneven-batches",
    cause="uneven_batches",
    title="Some ranks have fewer batches than others.",
    symptom="The job hangs or times out in the last steps of an epoch; or DDP's join says that a rank exhausted its inputs.",
    evidence="In a plain log: a timeout, and progress lines with different totals for one epoch. The probe's events do not count batches.",
    remedy=(
        "Give all ranks the same number of batches: DistributedSampler (which pads), drop_last=True, or 'with Join([model]):' (from "
        "torch.distributed.algorithms.join) around the loop."
    ),
    needs=("process.end",),
    printed=(
        Printed(r"Detected at least one rank that exhausted inputs", says="One rank has run out of batches before the others."),
        Printed(
            _TIMEOUT,
            beside=(
                r"Epoch(?:\(train\))?\s+\[(?P<epoch>\d+)\]\[\s*\d+/(?P<total>\d+)\].{0,300}?Epoch(?:\(train\))?\s+\[(?P=epoch)\]\[\s*\d+/(?!"
                r"(?P=total)\])\d+\]"
            ),
            says="The ranks count different numbers of batches in one epoch, and some stopped waiting for the others.",
            ranks=False,
        ),
        Printed(
            r"Detected mismatch between collectives on ranks\.[^\n]{1,200}?" + _GATHER + r"(?P<one>\d{1,6})(?P<rest>[^\]\d][^\]]*)?\].{1,2000}?"
            r"OpType=(?P=op), TensorShape=\[(?!(?P=one)\b)(?P<two>\d{1,6})(?(rest)(?P=rest))\]",
            unless=r"sync_batch_?norm|SyncBatchNorm|[Ff]sdp|FSDP|zero[/\\]",
            says="The ranks gather tensors of {one} and of {two} rows: their last batches differ in length.",
            ranks=False,
        ),
        Printed(
            (
                r"gather\w*: invalid tensor size at index \d+ \(expected [\[(](?P<one>\d+)(?P<rest>[^\])\n]*)[\])], got [\[(](?!(?P=one)\b)"
                r"(?P<two>\d+)(?P=rest)[\])]"
            ),
            says="A gather expects {one} rows, and gets {two}: the last batches of the ranks differ in length.",
            ranks=False,
        ),
        Printed(
            r"enforce fail at [^\n]*gloo[^\n]*\bop\.preamble\.length <= op\.nbytes\. (?P<sent>\d+) vs (?P<room>\d+)",
            beside=r"\bin (?:all_gather|gather|all_gather_into_tensor|_all_gather_base|concat_all_gather|gather_for_metrics)\b",
            unless=r"_verify_param|all_gather_object|gather_object|sync_batch_?norm",
            says="A gather gets {sent} bytes and expects {room}: the last batches of the ranks differ in length.",
            ranks=False,
        ),
        Printed(
            r"due to shape mismatches\. All shapes across devices must be valid\.[^\n]{0,40}\s{1,4}Operation: `[^`\n]*gather",
            says="The ranks gather tensors of different shapes: their last batches differ in length.",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find exceptions that say so; batches are not in the events."""
    found = [match for match in told(RULE, run) if match.printed is RULE.printed[0]]
    if not found:
        return
    failure = found[0].failure
    yield RULE.found(
        ranks=[],
        verdict="One rank ran out of batches before the others, which were at %s; each of them got this message." % place(failure.site),
        evidence=first_of([failed(match.failure) for match in found]),
        when=failure.when,
        explains=[match.failure for match in found],
    )
