"""Some ranks have fewer batches than others: the last ranks wait for gradients that no rank sends."""

from typing import Iterator

from ddp_probe.judging.printed import by_text
from ddp_probe.judging.rule import LOW, Finding, Printed, Rule, constant, failed, first_of
from ddp_probe.judging.timeouts import Timeouts, timeouts
from ddp_probe.judging.waiting import waited
from ddp_probe.judging.who import told
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import named, place

_TIMEOUT = r"[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (?:recv|send) operation|[Cc]ollective operation timeout"

_GATHER = r"OpType=(?P<op>_?ALLGATHER(?:_BASE)?|GATHER), TensorShape\s?=\["

RULE = Rule(
    id="DDP611",
    slug="uneven-batches",
    cause="uneven_batches",
    title="Some ranks have fewer batches than others.",
    symptom="The job hangs or times out in the last steps of an epoch; or DDP's join says that a rank exhausted its inputs.",
    evidence=(
        "In a plain log: a timeout, and progress lines with different totals for one epoch; or a timeout in a reduction of one element (a loss, a "
        "count), with nothing enqueued after it. The probe's events do not count batches."
    ),
    remedy=(
        "Give all ranks the same number of batches: DistributedSampler (which pads), drop_last=True, or 'with Join([model]):' (from "
        "torch.distributed.algorithms.join) around the loop."
    ),
    restart="no",  # The data is divided in the same way.
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
            r"OpType=(?P=op), TensorShape\s?=\[(?!(?P=one)\b)(?P<two>\d{1,6})(?(rest)(?P=rest))\]",
            unless=r"sync_batch_?norm|SyncBatchNorm|[Ff]sdp|FSDP|zero[/\\]",
            says="The ranks gather tensors of {one} and of {two} rows: their last batches differ in length.",
            ranks=False,
        ),
        # Each rank's exception by itself.
        Printed(
            r"Detected mismatch between collectives on ranks\.[^\n]{1,200}?" + _GATHER,
            beside=_GATHER
            + r"(?P<one>\d{1,6})(?P<rest>[^\]\d][^\]]*)?\].{1,2000}?OpType=(?P=op), TensorShape\s?=\[(?!(?P=one)\b)\d{1,6}(?(rest)(?P=rest))\]",
            unless=r"sync_batch_?norm|SyncBatchNorm|[Ff]sdp|FSDP|zero[/\\]",
            says="The ranks gather tensors of different numbers of rows: their last batches differ in length.",
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
    yields_to=("rank0-long-work", "collective-on-one-rank"),
)

_DECIDES = say(
    "To decide: print each rank's number of batches (len(loader), or a counter in the loop). If they are equal, look at what the ranks that printed "
    "nothing do then: evaluate, save, or leave the loop early."
)


def check(run: Run) -> Iterator[Finding]:
    """Find exceptions that say so; batches are not in the events."""
    matched = [match for match in told(RULE, run) if match.printed in (RULE.printed[0], RULE.printed[-1])]
    if not matched:
        return
    failure = matched[0].failure
    where = place(failure.site)
    verdict = say("The ranks gather tensors of different shapes at {where}: their last batches differ in length.", where=where)
    if matched[0].printed is RULE.printed[0]:  # By DDP's join.
        verdict = say(
            "One rank ran out of batches before the others, which were at {where}; each of them got this message.",
            where=where,
        )
    yield RULE.found(
        ranks=[],
        verdict=verdict,
        evidence=first_of([failed(match.failure) for match in matched]),
        when=failure.when,
        explains=[match.failure for match in matched],
    )


def read(run: Run) -> Iterator[Finding]:
    """Use what torch says; else a timeout of one element, which is a loss, a count or a flag that each rank reduces once a step."""
    by_words = list(by_text(RULE, run, plain=True))
    yield from by_words
    for notice in [] if by_words else timeouts(RULE, run):
        if _one_element(notice):
            failure = notice.match.failure
            given_up = [other for other in run.failures if other.at.file == failure.at.file and waited(other)]
            yield RULE.found(
                ranks=notice.silent,
                verdict=_waits_for_the_silent(notice),
                evidence=[failed(failure)],
                when=float(failure.at.line),
                explains=given_up or [failure],
                confidence=LOW,
                remedy=joined([constant(RULE.remedy), _DECIDES]),
            )


def _waits_for_the_silent(notice: Timeouts) -> Text:
    rank, wait = sorted(notice.waits.items())[0]
    silent = named(notice.silent) if notice.silent else say("another rank")
    if len(notice.waits) == 1:
        return say(
            "Rank {rank} waits in a reduction of one element (number {number}: a loss, a count or a flag), which "
            "{silent} {silent:does|do} not reach: most often because its batches have run out.",
            rank=rank,
            number=wait.number,
            silent=silent,
        )
    return say(
        "Ranks wait in a reduction of one element (number {number}: a loss, a count or a flag), which "
        "{silent} {silent:does|do} not reach: most often because its batches have run out.",
        number=wait.number,
        silent=silent,
    )


def _one_element(notice: Timeouts) -> bool:
    """Tell whether all wait in one reduction of one element, and had enqueued nothing after it."""
    numbers = {wait.number for wait in notice.waits.values()}
    small = all(wait.op == "ALLREDUCE" and wait.size == 1 for wait in notice.waits.values())
    return (
        notice.first
        and small
        and not notice.barrier
        and len(numbers) == 1
        and min(numbers) > 1
        and bool(notice.enqueued)
        and set(notice.enqueued.values()) == numbers
    )
