"""Ranks are in different collectives, or in none: each waits for what the others do not call."""

from typing import Iterator, List, Union

from ddp_probe.diagnose._fingerprints import DDP_SENDS, JOB_BROADCASTS, TWO_SIZES
from ddp_probe.diagnose._models import buffers, first_wraps
from ddp_probe.diagnose._waits import PEER_GONE, joined, last_seen, others, since, stood, waited
from ddp_probe.diagnose._who import deaths, place, ranks, told
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule, Undecided, failed, first_of
from ddp_probe.diagnose.rules.recorded import rank_on_another_path as recorded
from ddp_probe.diagnose.words import named, spans
from ddp_probe.read.model import Failed, LoggedProcess, Run

_LIST = (
    r"(?P<rank1>\d+)(?:, (?P<rank2>\d+))?(?:, (?P<rank3>\d+))?(?:, (?P<rank4>\d+))?(?:, (?P<rank5>\d+))?(?:, (?P<rank6>\d+))?(?:, (?P<rank7>\d+))?"
)
# The watchdogs of two ranks tell of one number and of another operation, or of another size; in a group of its own each number counts for itself.
_WATCHDOG = r"[Ww]atchdog caught collective operation timeout: WorkNCCL\(SeqNum="
_UNLIKE = (
    r"\A(?!.*\[PG (?:ID )?[1-9]).*?\[Rank (?P<r>\d+)\] " + _WATCHDOG + r"(?P<n>\d+), OpType=(?P<op>\w+),(?: NumelIn=(?P<size>\d+),)?"
    r".{1,3000}?\[Rank (?!(?P=r)\])\d+\] " + _WATCHDOG + r"(?P=n), OpType=(?:(?!(?P=op),)\w+|(?P=op), NumelIn=(?(size)(?!(?P=size),)\d+|(?!)))"
)
# The same of two kinds of operation, whatever their numbers: one rank has gone another way before.
_OTHER_KIND = (
    r"\A(?!.*\[PG (?:ID )?[1-9]).*?\[Rank (?P<r>\d+)\] " + _WATCHDOG + r"\d+, OpType=(?P<op>\w+),"
    r".{1,3000}?\[Rank (?!(?P=r)\])\d+\] " + _WATCHDOG + r"\d+, OpType=(?!(?P=op),)\w+"
)

_STACKS = "While it hangs, see where each rank stands (py-spy dump --pid PID), or start it with TORCH_DISTRIBUTED_DEBUG=INFO and a short timeout= in init_process_group."

RULE = Rule(
    id="DDP603",
    slug="rank-on-another-path",
    cause="rank_divergent_control_flow",
    title="The ranks do not call the same collectives in the same order.",
    symptom="The job hangs until a timeout, or gloo aborts a process over a length that it did not expect.",
    evidence="Texts in which torch compares the collectives of the ranks. A timeout alone names the ranks that wait, never the one that is missing.",
    remedy="Let all ranks take the same branches around collectives: decide on one rank and broadcast the decision, and run with TORCH_DISTRIBUTED_DEBUG=DETAIL once to have torch compare them.",
    needs=("process.end",),
    printed=(
        Printed(
            r"Detected mismatch between collectives on ranks\. Rank (?P<a>\d+) is running (?:inconsistent )?collective: CollectiveFingerPrint\((?:SequenceNumber=\d+, )?OpType=(?P<op>\w+)",
            unless=DDP_SENDS + "|" + TWO_SIZES,
            says="Rank {a} is in {op}, and another rank is in a collective that does not fit.",
            ranks=False,
        ),
        Printed(TWO_SIZES, beside=JOB_BROADCASTS, says="Ranks bring tensors of different shapes to one broadcast: [{one}] and [{two}].", ranks=False),
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
            says="Rank {rank1} and those named with it did not come to the barrier.",
        ),
        Printed(
            r"Forward order differs across ranks: rank (?P<a>\d+) is all-gathering (?P<what>[^\n]*?) while rank (?P<b>\d+) is",
            says="Ranks {a} and {b} go through the layers of the model in different orders.",
            ranks=False,
        ),
        Printed(
            r"NCCL WARN Mismatched collective detected[^\n]*?rank (?P<rank>\d+)",
            says="NCCL sees other collectives, or other sizes of one, at and around rank {rank}.",
        ),
        # What torch's analysis of the Flight Recorder prints.
        Printed(
            r"Culprit rank (?P<rank>\d+); Error type: (?P<what>(?:COLLECTIVE_TYPE|SIZE_OR_SYNTAX)_MISMATCH)",
            says="The Flight Recorder of rank {rank} has another collective there than the others ({what}).",
        ),
        Printed(
            _WATCHDOG,
            beside=_UNLIKE,
            says="The ranks wait in different collectives of one number, or bring tensors of different sizes to one.",
            ranks=False,
        ),
        Printed(
            _WATCHDOG,
            beside=_OTHER_KIND,
            says="The ranks wait in collectives of different kinds.",
            ranks=False,
        ),
        Printed(r"disagreement between rank0 and rank(?P<rank>\d+)", says="Rank {rank} and rank 0 are not at the same parameters."),
        Printed(
            r"tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for (?:the )?remainder of ranks",
            says="Some ranks have called a collective that the others have not.",
            ranks=False,
        ),
        Printed(
            r"enforce fail at [^\n]*gloo[^\n]*\bop\.preamble\.length <= op\.nbytes\. (?P<sent>\d+) vs (?P<room>\d+)",
            beside=r"in (?:all_reduce|all_gather\w*|broadcast\w*|reduce\w*|gather\w*|scatter\w*|all_to_all\w*)\b",
            unless=DDP_SENDS + r"|_verify_param",
            says="A rank sends {sent} bytes to one that expects {room}: they are in different collectives, or bring tensors of different sizes to one.",
            ranks=False,
        ),
        Printed(
            r"arguments for collective communication are inconsistent between ranks[^\n]*?parameter ?\[(?P<what>(?!data_?[tT]ype)\w+)\], local ?\[(?P<one>[^\]\n]+)\], remote ?\[(?P<two>[^\]\n]+)\]",
            says="Ranks bring two values of {what} to one collective: {one} and {two}.",
            ranks=False,
        ),
    ),
    yields_to=("collective-dtype-mismatch", "uneven-batches"),
)


EXAMPLES = (
    Example(
        "torch compares the collectives, and they differ.",
        recorded.TORCH_COMPARES_COLLECTIVES,
    ),
    Example(
        "Rank 1 gives up at a barrier, and nothing tells what rank 0 was at.",
        recorded.RANK_1_GIVES_UP_AT_BARRIER,
        answer="undecided",
        job="08_long_validation_on_rank0",
    ),
    Example(
        "gloo aborts rank 0 over a length, and nothing tells which collectives met.",
        recorded.GLOO_ABORTS_RANK_0_OVER_LENGTH,
        answer="undecided",
        job="08_different_sizes",
    ),
    Example(
        "Rank 1 is killed, and rank 0 loses it.",
        """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection reset by peer"}}
{"event":"process.start","rank":1,"world_size":2}
{"event":"launcher.start","launcher":"torchrun"}
{"event":"launcher.child","child_rank":1,"child_local_rank":1,"exit_code":-9,"signal":"SIGKILL"}
""",
        answer="clear",
    ),
    Example(
        "The text of the failure is all there is.",
        recorded.TEXT_OF_FAILURE_IS_ALL_THERE,
    ),
    Example(
        "One broadcast has two sizes: those are buffers.",
        recorded.ONE_BROADCAST_HAS_TWO_SIZES,
        answer="clear",
    ),
    Example(
        "The job itself brings two sizes to a broadcast.",
        recorded.JOB_ITSELF_BRINGS_TWO_SIZES_TO_BROADCAST,
    ),
    Example(
        "The watchdogs of the ranks tell of two kinds of collectives.",
        recorded.WATCHDOGS_OF_RANKS_TELL_OF_TWO_KINDS,
    ),
    Example(
        "The watchdogs of two ranks name different operations of one number.",
        recorded.WATCHDOGS_OF_TWO_RANKS_NAME_DIFFERENT_OPERATIONS,
    ),
    Example(
        "The watchdogs of all ranks name one operation.",
        recorded.WATCHDOGS_OF_ALL_RANKS_NAME_ONE_OPERATION,
        answer="clear",
    ),
)


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Say what torch has compared; else who waited, where and since when, and that it takes more to name the one who was missing."""
    found = list(told(RULE, run))
    if found:
        first = found[0]
        named_ranks = sorted({int(value) for name, value in first.found.groupdict().items() if name.startswith("rank") and value and len(value) < 8})
        yield RULE.found(
            ranks=named_ranks,
            verdict="%s It stood at %s." % (first.printed.says.format(**first.found.groupdict(default="?")), place(first.failure.site)),
            evidence=first_of([failed(match.failure) for match in found]),
            when=first.failure.when,
            explains=[match.failure for match in found],
        )
        return
    waiting = [failure for failure in run.failures if failure.fatal and not failure.consequence and waited(failure)]
    if waiting and not _own(run):
        yield RULE.undecided(_hang(run, waiting), explains=waiting, then=_STACKS)
    for process in _aborted(run)[:3]:
        lost = [failure for failure in run.failures if failure.consequence == PEER_GONE]
        yield RULE.undecided(_abort(run, process), explains=[process.death, *lost], then=_STACKS)


def _own(run: Run) -> bool:
    """Tell that somebody failed for a reason of its own: then the others waited for nobody else."""
    return any(failure.fatal and failure.uncaught and not failure.consequence and not waited(failure) for failure in run.failures)


def _hang(run: Run, waiting: List[Failed]) -> str:
    parts = [
        "%s waited %s %s" % (named([failure.rank] if failure.rank is not None else []), stood(failure), since(failure)) for failure in waiting[:8]
    ]
    rest = others(run, waiting)
    parts += ["rank %s %s" % (process.rank, last_seen(process)) for process in rest[:8]]
    more = max(len(waiting) - 8, 0) + max(len(rest) - 8, 0)
    end = " (and %d more ranks)" % more if more else ""
    return "%s%s. Which collective each rank was in is not recorded, so none is called the missing one." % (_sentence(parts), end)


def _aborted(run: Run) -> List[LoggedProcess]:
    """Return those that abort() ended in the middle; where buffers differ, another rule has the answer."""
    ended = {rank for rank, death in deaths(run).items() if death.signal == "SIGABRT"}
    if not ended or len({buffers(wrapped) for wrapped in first_wraps(run)}) > 1:
        return []
    return [process for process in run.processes if process.rank in ended and process.end is None and joined(process)]


def _abort(run: Run, process: LoggedProcess) -> str:
    lost = [failure for failure in run.failures if failure.consequence == PEER_GONE]
    parts = ["rank %s was ended by SIGABRT: it %s" % (process.rank, last_seen(process).partition(" and was ended")[0])]
    parts += ["rank %s lost it %s" % (failure.rank, stood(failure)) for failure in lost[:4]]
    return (
        "%s. gloo and NCCL end a process so when ranks %s are in different collectives or bring tensors of different sizes to one; which ones is not recorded."
        % (
            _sentence(parts),
            spans(ranks(run.processes)),
        )
    )


def _sentence(parts: List[str]) -> str:
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]
