"""Ranks have the same parameters and different buffers, which DDP sends from rank 0 to all."""

from typing import Dict, Iterator, List, Tuple

from ddp_probe.judging.rank_models import DDP_SENDS, JOB_BROADCASTS, TWO_SIZES, buffers, by_digest, first_wraps
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Printed, Rule, failed, line, shown
from ddp_probe.judging.who import through
from ddp_probe.judging.wrap_calls import Wrapped
from ddp_probe.reading.model import Run
from ddp_probe.wording.words import by_number, counted, named, place, subject

_BROADCAST = r"[Ww]atchdog caught collective operation timeout: Work\w{0,9}\(SeqNum="
_TWO_BROADCASTS = (
    r"\A(?!.*\[PG (?:ID )?[1-9]).*?\[Rank (?P<r>\d+)\] " + _BROADCAST + r"(?P<n>\d+), OpType=BROADCAST, NumelIn=(?P<size>\d+),"
    r".{1,3000}?\[Rank (?!(?P=r)\])\d+\] " + _BROADCAST + r"(?P=n), OpType=BROADCAST, NumelIn=(?!(?P=size),)\d+"
)

RULE = Rule(
    id="DDP705",
    slug="buffers-differ",
    cause="rank_dependent_buffer_shape",
    title="Ranks have buffers of different shapes, which DDP sends from rank 0 to all.",
    symptom="gloo aborts a rank (SIGABRT, 'op.preamble.length <= op.nbytes') in or right after the wrap; NCCL hangs or fails there.",
    evidence="The digests of the parameters are equal, and the numbers or sizes of the buffers differ.",
    remedy=(
        "Give the buffer the same shape on all ranks, or keep it out of the module: use register_buffer for what is the same everywhere, and "
        "an attribute for what differs by rank."
    ),
    needs=("ddp.init",),
    printed=(
        Printed(
            r"Detected mismatch between collectives on ranks\. Rank \d+ is running (?:inconsistent )?collective: CollectiveFingerPrint\(",
            beside=r"in (?:\w+\.)*(?:%s)\b" % DDP_SENDS,
            says="While DDP sends parameters and buffers from rank 0, the ranks pass tensors of different shapes.",
            ranks=False,
        ),
        Printed(
            TWO_SIZES,
            unless=JOB_BROADCASTS,
            says="Ranks pass tensors of different shapes to the same broadcast: [{one}] and [{two}]; DDP sends buffers this way.",
            ranks=False,
        ),
        Printed(
            r"enforce fail at [^\n]*gloo[^\n]*\bop\.preamble\.length <= op\.nbytes\. (?P<sent>\d+) vs (?P<room>\d+)",
            beside=DDP_SENDS,
            says="While DDP sends buffers from rank 0, {sent} bytes arrive where {room} are expected.",
            ranks=False,
        ),
        Printed(
            r"[Ww]atchdog caught collective operation timeout: Work\w{0,9}\(SeqNum=\d+, OpType=BROADCAST, NumelIn=(?P<one>\d+)",
            beside=_TWO_BROADCASTS,
            unless=JOB_BROADCASTS,
            says="The ranks wait in one broadcast, to which one of them passes {one} elements and another a different number; DDP sends buffers "
            "this way.",
            ranks=False,
        ),
    ),
)


Shape = Tuple[int, int]  # buffers, elements in them


def check(run: Run) -> Iterator[Finding]:
    """Compare the buffers of models whose parameters are alike."""
    wraps = first_wraps(run)
    if len(by_digest(wraps)) != 1:
        return
    groups: Dict[Shape, List[Wrapped]] = {}
    for wrapped in wraps:
        groups.setdefault(buffers(wrapped), []).append(wrapped)
    if len(groups) < 2:
        return
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    odd = [wrapped for _, group in ordered[1:] for wrapped in group] if len(ordered[0][1]) * 2 > len(wraps) else []
    calls = [wrapped.call for wrapped in wraps]
    failures = through(run, calls)
    yield RULE.found(
        ranks=[wrapped.process.rank for wrapped in odd if wrapped.process.rank is not None],
        verdict="The parameters are the same, but the buffers are not: %s.%s"
        % ("; ".join(_told(shape, group) for shape, group in ordered[:3]), _end(run, wraps)),
        evidence=[
            *(shown(group[0].call, "%s, %s" % (counted(shape[0], "buffer"), counted(shape[1], "element"))) for shape, group in ordered[:3]),
            *_deaths(run, wraps),
            *(failed(failure) for failure in failures[:2]),
        ],
        when=min(call.when for call in calls),
        severity=WARNING if all(wrapped.survived for wrapped in wraps) else "",
        explains=failures,
        remedy=(
            "Give the buffers the same shape on all ranks before the wrap at %s, or keep what differs by rank in an attribute instead of "
            "register_buffer."
        )
        % place(calls[0].site),
    )


def _told(shape: Shape, group: List[Wrapped]) -> str:
    who = named([wrapped.process.rank for wrapped in group if wrapped.process.rank is not None])
    return "%s %s %d with %s" % (who, "has" if len(group) == 1 else "have", shape[0], counted(shape[1], "element"))


def _end(run: Run, wraps: List[Wrapped]) -> str:
    hit = [wrapped.process.rank for wrapped in wraps if not wrapped.survived and wrapped.process.rank is not None]
    signals = sorted({death.signal for death in run.deaths if death.rank in hit and death.signal})
    how = "%s ended by %s in the wrap" % (by_number(hit, "was", "were"), ", ".join(signals)) if signals else "did not get through the wrap"
    return " %s %s." % (subject(hit), how) if hit else ""


def _deaths(run: Run, wraps: List[Wrapped]) -> List[Evidence]:
    hit = {wrapped.process.rank for wrapped in wraps if not wrapped.survived}
    return [line(death.at, "exit code %s (%s)" % (death.exit_code, death.signal)) for death in run.deaths if death.rank in hit and death.signal][:2]
