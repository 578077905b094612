"""Ranks have the same parameters and different buffers, which DDP sends from rank 0 to all."""

from typing import Dict, Iterator, List, Tuple

from ddp_probe.judging.debug_detail import DDP_SENDS, JOB_BROADCASTS, TWO_SIZES
from ddp_probe.judging.rank_models import buffers, by_digest, first_wraps
from ddp_probe.judging.rule import WARNING, Evidence, Finding, Printed, Rule, failed, line, shown
from ddp_probe.judging.who import ranks_of, through
from ddp_probe.judging.wrap_calls import Wrapped
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import counted, listed, named, place

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
    restart="no",  # The code gives the buffer its shape.
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
    usual = ordered[0][1]
    odd: List[Wrapped] = []
    if len(usual) * 2 > len(wraps):
        for _, group in ordered[1:]:
            odd.extend(group)
    calls = [wrapped.call for wrapped in wraps]
    failures = through(run, calls)
    yield RULE.found(
        ranks=ranks_of(wrapped.process for wrapped in odd),
        verdict=_verdict(run, wraps, ordered[:3]),
        evidence=[
            *(_shown(shape, group) for shape, group in ordered[:3]),
            *_deaths(run, wraps),
            *(failed(failure) for failure in failures[:2]),
        ],
        when=min(call.when for call in calls),
        severity=WARNING if all(wrapped.survived for wrapped in wraps) else "",
        explains=failures,
        remedy=say(
            "Give the buffers the same shape on all ranks before the wrap at {where}, or keep what differs by rank in an "
            "attribute instead of register_buffer.",
            where=place(calls[0].site),
        ),
    )


def _verdict(run: Run, wraps: List[Wrapped], groups: List[Tuple[Shape, List[Wrapped]]]) -> Text:
    sides = listed([_side(shape, group) for shape, group in groups], by="; ")
    difference = say("The parameters are the same, but the buffers are not: {sides}.", sides=sides)
    lost = [wrapped.process.rank for wrapped in wraps if not wrapped.survived]
    hit = [rank for rank in lost if rank is not None]
    signals = sorted({death.signal for death in run.deaths if death.rank in hit and death.signal})
    if not hit:
        return difference
    if not signals:
        return joined([difference, say("{who:capital} did not get through the wrap.", who=named(hit))])
    ended = say(
        "{who:capital} {who:was|were} ended by {signals} in the wrap.",
        who=named(hit),
        signals=listed(signals),
    )
    return joined([difference, ended])


def _side(shape: Shape, group: List[Wrapped]) -> Text:
    who = named(ranks_of(wrapped.process for wrapped in group))
    return say(
        "{who} {who:has|have} {buffers} with {elements}",
        who=who,
        buffers=shape[0],
        elements=counted(shape[1], "element"),
    )


def _shown(shape: Shape, group: List[Wrapped]) -> Evidence:
    text = say(
        "{buffers}, {elements}",
        buffers=counted(shape[0], "buffer"),
        elements=counted(shape[1], "element"),
    )
    return shown(group[0].call, text)


def _deaths(run: Run, wraps: List[Wrapped]) -> List[Evidence]:
    hit = {wrapped.process.rank for wrapped in wraps if not wrapped.survived}
    deaths = [death for death in run.deaths if death.rank in hit and death.signal]
    ended = []
    for death in deaths[:2]:
        text = say("exit code {code} ({signal})", code=death.exit_code, signal=death.signal)
        ended.append(line(death.at, text))
    return ended
