"""Ranks are in different collectives, or in none: each waits for a call that the others do not make."""

from typing import Iterator, List, Optional, Union

from ddp_probe.judging.debug_detail import DDP_SENDS, JOB_BROADCASTS, TWO_SIZES
from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.printed import by_text, matches, verdict_of
from ddp_probe.judging.rank_models import buffers, first_wraps
from ddp_probe.judging.rule import LOW, Finding, Printed, Rule, Undecided, failed, first_of
from ddp_probe.judging.timeouts import WATCHDOG, Timeouts, stands, timeouts
from ddp_probe.judging.waiting import call_of, joined, last_done, last_seen, others, since, stood, waited
from ddp_probe.judging.who import deaths, ranks, told
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import command, counted, listed, named, place

_LIST = (
    r"(?P<rank1>\d+)(?:, (?P<rank2>\d+))?(?:, (?P<rank3>\d+))?(?:, (?P<rank4>\d+))?(?:, (?P<rank5>\d+))?(?:, (?P<rank6>\d+))?(?:, (?P<rank7>\d+))?"
)
# The watchdogs of two ranks report the same number with another operation or another size; each group counts its own numbers.
_WATCHDOG = r"[Ww]atchdog caught collective operation timeout: Work\w{4}\(SeqNum="
_WITH_KIND = r"[Ww]atchdog caught collective operation timeout: Work\w{4}\((?:SeqNum=\d+, )?OpType="  # torch 1.10 has no number.
_UNLIKE = (
    r"\A(?!.*\[PG (?:ID )?[1-9]).*?\[Rank (?P<r>\d+)\] " + _WATCHDOG + r"(?P<n>\d+), OpType=(?P<op>\w+),(?: NumelIn=(?P<size>\d+),)?"
    r".{1,3000}?\[Rank (?!(?P=r)\])\d+\] " + _WATCHDOG + r"(?P=n), OpType=(?:(?!(?P=op),)\w+|(?P=op), NumelIn=(?(size)(?!(?P=size),)\d+|(?!)))"
)
# The same with two kinds of operation, at any numbers: one rank took another path before.
_OTHER_KIND = (
    r"\A(?!.*\[PG (?:ID )?[1-9]).*?\[Rank (?P<r>\d+)\] " + _WITH_KIND + r"(?P<op>\w+),"
    r".{1,3000}?\[Rank (?!(?P=r)\])\d+\] " + _WITH_KIND + r"(?!(?P=op),)\w+"
)

_STACKS = say(
    "While it hangs, look where each rank is ({look}), or start it with TORCH_DISTRIBUTED_DEBUG=INFO and a short timeout= in init_process_group.",
    look=command("attach"),
)
_PATH = say(
    "The path between the cards, or a card, is stuck: look at nvidia-smi and dmesg of each host, and start once with NCCL_P2P_DISABLE=1, and "
    "once with NCCL_IB_DISABLE=1."
)

RULE = Rule(
    id="DDP603",
    slug="rank-on-another-path",
    cause="rank_divergent_control_flow",
    title="The ranks do not call the same collectives in the same order.",
    symptom="The job hangs until a timeout, or gloo aborts a process because of a length that it did not expect.",
    evidence=(
        "A message in which torch compares the collectives of the ranks; or the timeouts of several ranks, which name different numbers or "
        "leave a rank out. One timeout alone names the rank that waits, never the missing one."
    ),
    remedy=(
        "Let all ranks take the same branches around collectives: decide on one rank and broadcast the decision, "
        "and run with TORCH_DISTRIBUTED_DEBUG=DETAIL once to have torch compare them."
    ),
    restart="no",  # The ranks take the same paths again.
    needs=("process.end",),
    printed=(
        Printed(
            (
                r"Detected mismatch between collectives on ranks\. Rank (?P<a>\d+) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
                r"(?:SequenceNumber=\d+, )?OpType=(?P<op>\w+)"
            ),
            unless=DDP_SENDS + "|" + TWO_SIZES,
            says="Rank {a} is in {op}, and another rank is in a collective that does not match.",
            ranks=False,
        ),
        Printed(
            TWO_SIZES, beside=JOB_BROADCASTS, says="Ranks pass tensors of different shapes to the same broadcast: [{one}] and [{two}].", ranks=False
        ),
        Printed(
            r"\[(?P<rank>\d+)\] finished collective #\d+, but didn't join collective #(?P<next>\d+)",
            says="Rank {rank} did not join collective number {next}, in which the others are.",
        ),
        Printed(
            r"ranks? \[(?P<rank>\d+)\] (?:are|is) the lagging ranks? that caused this timeout",
            says="Rank {rank} never joined the collective in which the others wait.",
        ),
        Printed(
            r"\[Rank 0\]: Ranks? " + _LIST + r" failed to pass monitoredBarrier",
            unless=r"Connection (?:closed|reset) by peer",
            says="Rank {rank1} and those named with it did not reach the barrier.",
        ),
        Printed(
            r"Forward order differs across ranks: rank (?P<a>\d+) is all-gathering (?P<what>[^\n]*?) while rank (?P<b>\d+) is",
            says="Ranks {a} and {b} go through the layers of the model in different orders.",
            ranks=False,
        ),
        Printed(
            r"NCCL WARN Mismatched collective detected[^\n]*?rank (?P<rank>\d+)",
            says="NCCL sees different collectives, or different sizes of one, at rank {rank} and its neighbours.",
        ),
        # What torch's analysis of the Flight Recorder prints.
        Printed(
            r"Culprit rank (?P<rank>\d+); Error type: (?P<what>(?:COLLECTIVE_TYPE|SIZE_OR_SYNTAX)_MISMATCH)",
            says="The Flight Recorder of rank {rank} shows another collective than those of the others ({what}).",
        ),
        Printed(
            _WATCHDOG,
            beside=_UNLIKE,
            says="The ranks wait in different collectives with the same number, or bring tensors of different sizes to one.",
            ranks=False,
        ),
        Printed(
            _WITH_KIND,
            beside=_OTHER_KIND,
            says="The ranks wait in collectives of different kinds.",
            ranks=False,
        ),
        Printed(r"disagreement (?:on list \w+ )?between rank0 and rank(?P<rank>\d+)", says="Rank {rank} and rank 0 are not at the same parameters."),
        Printed(
            r"tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for (?:the )?remainder of ranks",
            says="Some ranks have called a collective that the others have not.",
            ranks=False,
        ),
        Printed(
            r"enforce fail at [^\n]*gloo[^\n]*\bop\.preamble\.length <= op\.nbytes\. (?P<sent>\d+) vs (?P<room>\d+)",
            beside=r"in (?:all_reduce|all_gather\w*|broadcast\w*|reduce\w*|gather\w*|scatter\w*|all_to_all\w*)\b",
            unless=DDP_SENDS + r"|_verify_param",
            says=(
                "A rank sends {sent} bytes to one that expects {room}: they are in different collectives, or bring tensors of different sizes to one."
            ),
            ranks=False,
        ),
        Printed(
            (
                r"arguments for collective communication are inconsistent between ranks[^\n]*?parameter ?\[?(?P<what>(?!data_?[tT]ype)\w+)\]?, local"
                r"(?: end)? ?\[?(?P<one>[^\]\n,]+)\]?, remote(?: end)? ?\[?(?P<two>[^\]\n.]+)"
            ),
            says="Ranks bring two values of {what} to one collective: {one} and {two}.",
            ranks=False,
        ),
    ),
    yields_to=("collective-dtype-mismatch", "uneven-batches", "buffers-differ", "collective-on-one-rank", "rank0-long-work"),
)


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Report what torch compared; else the ranks that waited, where and since when, as that does not name the missing one."""
    matched = list(told(RULE, run))
    if matched:
        first = matched[0]
        named_ranks = sorted({int(value) for name, value in first.found.groupdict().items() if name.startswith("rank") and value and len(value) < 8})
        yield RULE.found(
            ranks=named_ranks,
            verdict=say("{message} It was at {where}.", message=verdict_of(RULE, first), where=place(first.failure.site)),
            evidence=first_of([failed(match.failure) for match in matched]),
            when=first.failure.when,
            explains=[match.failure for match in matched],
        )
        return
    waiting = [failure for failure in run.failures if failure.fatal and not failure.consequence and waited(failure)]
    if waiting and not _own(run):
        yield RULE.undecided(_hang(run, waiting), explains=waiting, then=_STACKS)
    for process in _aborted(run)[:3]:
        lost = [failure for failure in run.failures if failure.consequence == PEER_GONE]
        yield RULE.undecided(_abort(run, process), explains=[process.death, *lost], then=_STACKS)


def read(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Report what torch compared; else what the timeouts of the ranks tell when they are laid side by side."""
    by_words = list(by_text(RULE, run, plain=True)) or list(_apart(run))
    yield from by_words
    for notice in [] if by_words else timeouts(RULE, run):
        verdict = _side_by_side(notice)
        if verdict:
            failure = notice.match.failure
            yield RULE.found(
                ranks=notice.behind or notice.silent if notice.one_group else [],
                verdict=verdict,
                evidence=[failed(failure)],
                when=float(failure.at.line),
                explains=[other for other in run.failures if other.at.file == failure.at.file and waited(other)] or [failure],
                confidence=LOW,
                remedy=_STACKS,
            )
        elif notice.all_came and notice.one_group and notice.first:
            all_came = say(
                "Ranks 0-{last} reached collective number {number} and enqueued others after it, but none completed it: none is missing.",
                last=len(notice.waits) - 1,
                number=min(wait.number for wait in notice.waits.values()),
            )
            notices = matches(RULE._replace(printed=(Printed(WATCHDOG),)), run)
            yield RULE.undecided(all_came, [match.failure for match in notices], _PATH)


def _apart(run: Run) -> Iterator[Finding]:
    """Compare the calls in which gloo's or HCCL's ranks stopped waiting, and who of them says nothing."""
    known = stands(run)
    calls = {call_of(failure): rank for rank, failure in sorted(known.failures.items(), reverse=True) if failure.frames}
    parts = [
        say("{who} {who:waits|wait} {stop}", who=named([rank]), stop=stood(known.failures[rank]))
        for call, rank in sorted(calls.items(), key=lambda item: item[1])
        if call.isidentifier()
    ]
    if len(parts) < 2:
        waits = named(sorted(known.failures))
        parts = [say("{silent} {silent:is|are} missing, while {who} wait", silent=named(known.silent), who=waits)]
    if len(parts) > 1 or known.silent:
        first = min(known.failures.values(), key=lambda failure: failure.when)
        yield RULE.found(
            ranks=known.silent if len(parts) == 1 else [],
            verdict=say("The ranks take different paths: {parts}.", parts=listed(parts, by=", and ")),
            evidence=first_of([failed(failure) for _, failure in sorted(known.failures.items())]),
            when=first.when,
            explains=list(known.failures.values()),
            confidence=LOW,
            remedy=_STACKS,
        )


def _side_by_side(notice: Timeouts) -> Optional[Text]:
    """Say how the ranks differ; nothing of the first collective, in which the path between them may be broken."""
    waits = sorted(notice.waits.items())
    numbers = {wait.number for _, wait in waits}
    if not (notice.first and notice.one_group and waits) or min(numbers) < 2:
        return None
    rank, wait = max(waits, key=lambda item: item[1].number)
    if notice.behind:
        return say(
            "The ranks take different paths: {behind} had not enqueued number {number} ({op}), in which rank {rank} waits.",
            behind=named(notice.behind),
            number=wait.number,
            op=wait.op,
            rank=rank,
        )
    if len(numbers) > 1:
        other, earlier = min(waits, key=lambda item: item[1].number)
        return say(
            "The ranks take different paths: rank {other} waits in number {earlier} ({earlier_op}), and rank {rank} in number {number} ({op}).",
            other=other,
            earlier=earlier.number,
            earlier_op=earlier.op,
            rank=rank,
            number=wait.number,
            op=wait.op,
        )
    if notice.silent:
        return say(
            "The ranks take different paths: {silent} {silent:is|are} missing, while {who} {who:waits|wait} in number {number} ({op}).",
            silent=named(notice.silent),
            who=named([waiting for waiting, _ in waits]),
            number=wait.number,
            op=wait.op,
        )
    return None


def _own(run: Run) -> bool:
    """Tell whether a rank failed for its own reason: then the others waited for that rank."""
    return any(failure.fatal and failure.uncaught and not failure.consequence and not waited(failure) for failure in run.failures)


def _hang(run: Run, waiting: List[Failed]) -> Text:
    parts = [_waited(failure) for failure in waiting[:8]]
    rest = others(run, waiting)
    parts += [say("rank {rank} {does}", rank=process.rank, does=last_seen(process)) for process in rest[:8]]
    more = max(len(waiting) - 8, 0) + max(len(rest) - 8, 0)
    return say(
        "{parts:capital}{more}. The collective of each rank is not recorded, so the missing rank is not known.",
        parts=listed(parts, by="; "),
        more=say(" (and {ranks})", ranks=counted(more, "more rank")) if more else "",
    )


def _waited(failure: Failed) -> Text:
    who = named([failure.rank] if failure.rank is not None else [])
    return say("{who} waited {stop} {since}", who=who, stop=stood(failure), since=since(failure))


def _aborted(run: Run) -> List[LoggedProcess]:
    """Return the ranks that abort() ended in the middle; if buffers differ, another rule has the answer."""
    ended = {rank for rank, death in deaths(run).items() if death.signal == "SIGABRT"}
    if not ended or len({buffers(wrapped) for wrapped in first_wraps(run)}) > 1:
        return []
    return [process for process in run.processes if process.rank in ended and process.end is None and joined(process)]


def _abort(run: Run, process: LoggedProcess) -> Text:
    lost = [failure for failure in run.failures if failure.consequence == PEER_GONE]
    who = named(ranks([process]))
    template = "{who} {who:was|were} ended by SIGABRT: {who:it|they} {did}"
    parts = [say(template, who=who, did=last_done(process))]
    parts += [say("rank {rank} lost the connection {stop}", rank=failure.rank, stop=stood(failure)) for failure in lost[:4]]
    facts = {"parts": listed(parts, by="; "), "who": _members(ranks(run.processes))}
    if standings_of(run).ranks and standings_of(run).unknown:
        return say(
            "{parts:capital}. gloo and NCCL abort a process if {who} are in different collectives, or pass "
            "tensors of different sizes to the same one; it is not known where {unknown} stood.",
            unknown=named(sorted(standings_of(run).unknown)),
            **facts,
        )
    if not standings_of(run).ranks:
        return say(
            "{parts:capital}. gloo and NCCL abort a process if {who} are in different collectives, or pass tensors "
            "of different sizes to the same one; the collectives are not recorded.",
            **facts,
        )
    return say(
        "{parts:capital}. gloo and NCCL abort a process if {who} are in different collectives, or pass tensors "
        "of different sizes to the same one; their ledgers show none that differs.",
        **facts,
    )


def _members(members: List[int]) -> Text:
    """Name the ranks that can have disagreed; one alone cannot, so the others have left no file."""
    return named(members) if len(members) > 1 else say("the ranks")
