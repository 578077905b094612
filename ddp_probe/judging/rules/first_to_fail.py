"""One rank failed first and the others lost the connection to it: which rank, if no other rule knows why."""

import re
from typing import Iterator, List, Set, Union

from ddp_probe.judging.parted import of_kind
from ddp_probe.judging.rule import MEDIUM, Evidence, Finding, Printed, Rule, Undecided, failed, line
from ddp_probe.judging.waiting import last_seen, starting, waited
from ddp_probe.judging.who import deaths, ranks
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.standing.splits import LEFT
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import clock, lasting, named, place, quoted

# A rank that says this compared itself with another one: it did not fail before that one.
_COMPARED = Expression(r"DDP expects same model across all ranks|appears not to match (?:sizes|strides) of the same param")
_MEMORY = Expression(r"out of memory|can't allocate memory|Cannot allocate memory|MemoryError", re.IGNORECASE)

RULE = Rule(
    id="DDP621",
    slug="first-to-fail",
    cause="rank_stopped_participating",
    title="One rank failed first, and the others lost the connection to it.",
    symptom="Different tracebacks on different ranks; most of them report a closed connection.",
    evidence="The earliest exception that does not report the loss of another rank, on a minority of the ranks; or the one rank without a last line.",
    remedy="Fix the exception of the rank that failed first; the others are its consequences. Find out what ended a rank without a last line.",
    restart="unknown",  # Why the rank failed is not known.
    needs=("process.end",),
    printed=(
        Printed(
            r"Connection (?:closed|reset) by peer|[Rr]emote process exited|ncclRemoteError|Dead[Ll]ock detected from rank: \d",
            unless=r"init_process_group|rendezvous|_store_based_barrier|TCPStore|urllib|requests/|http|ssl\.py|socket\.py|hub\.py",
            says="The log says that a peer is gone, but neither which nor why: it failed before, was ended from outside, or the network broke.",
            next="Look in the logs of the other ranks and hosts for the one that ended first, and for its exit code (torchrun, sacct, kubectl).",
            ranks=False,
        ),
        Printed(
            r"\bRendezvousClosedError\b",
            says="torchrun's rendezvous was closed before this host could join it: another host had ended or failed before.",
            ranks=False,
        ),
        Printed(
            r"EI0006\b[^\n]*Getting socket times out",
            says=(
                "HCCL waited for a connection that another rank did not make: it failed before, was not started, is elsewhere, or cannot be reached."
            ),
            next="Look in the logs of the other ranks and hosts for an earlier failure; then try hccn_tool -i 0 -net_health -g on each host.",
            ranks=False,
        ),
        Printed(
            r"EI0002\b[^\n]*(?:Notify register|operator execution waiting) times out",
            says="HCCL waited within a collective for a rank that did not arrive: it failed before, has not got that far, or cannot be reached.",
            next="Look in the logs of the other ranks and hosts for an earlier failure, and which collective each of them was in.",
            ranks=False,
        ),
        Printed(
            r"EI0015\b[^\n]*(?:ranktable|cluster information)|EI001[38]\b[^\n]*error CQE",
            says="HCCL does not get an answer from another rank: it has ended, has not got that far, or cannot be reached.",
            next="Look for an earlier failure of that rank; if there is none, HCCL_SOCKET_IFNAME must name the hosts' network on each of them, and "
            "hccn_tool -i 0 -net_health -g shows whether the cards' network works.",
            ranks=False,
        ),
        Printed(
            r"Failed to meet rendezvous '(?P<what>[^'\n]{1,80})': (?P<why>Socket closed|Connection reset by peer|Deadline Exceeded)",
            says="XLA's processes did not all reach {what} ({why}): one of them failed before, or is elsewhere.",
            next="Look for the process (Exception in device=TPU:N) whose exception is a different one; its log says why.",
            ranks=False,
        ),
        # In the backward pass all ranks exchange gradients: a rank that is missing has left the loop, or is delayed in it.
        Printed(
            r"Timed out waiting \d+ ?ms for (?:recv|send) operation",
            beside=r"\.backward\(|\bin backward\b",
            says=(
                "A rank stopped waiting for the gradients of another rank, which had left the training loop or was delayed: "
                "look at what the ranks that printed nothing did last."
            ),
            ranks=False,
        ),
    ),
    last_resort=True,
    needs_all=True,
    yields_to=("own-exception", "rank-left-while-others-wait"),
)


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Find the first exception that a minority of the ranks raised by themselves, if the others report a loss; else who left no last line."""
    own = [failure for failure in run.failures if _own(failure)]
    if run.outside is None and not any(failure.fatal and not failure.consequence for failure in run.failures):
        yield from _vanished(run)
    guilty = ranks(failure.process for failure in own)
    size = max(run.expected or 0, len(run.ranks))
    if not guilty or size < 2 or len(guilty) * 2 > size:
        return
    lost = _losers(run, own[0].when, set(guilty))
    if not lost:
        return
    first = own[0]
    losers = set(lost)
    losses = [failure for failure in run.failures if failure.rank in losers and failure.fatal]
    yield RULE.found(
        ranks=guilty,
        verdict=say(
            "{who:capital} failed first, at {where}, with {error}; {loss}.",
            who=named(guilty),
            where=place(first.site),
            error=quoted(first.said(200).rstrip(".")),
            loss=_loss(first, lost, losses),
        ),
        evidence=[failed(failure) for failure in [*own[:3], *losses[:2]]],
        when=first.when,
        explains=[*own, *losses],
        confidence=MEDIUM,
        remedy=_remedy(first),
    )


def _vanished(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Name the ranks that wrote no last line, if no launcher's file says how they ended, and no ledger who waits for them."""
    lost = [failure for failure in run.failures if failure.consequence == PEER_GONE]
    hangs: List[LoggedCall[schema.LauncherHang]] = []
    for process in run.processes:
        hangs += [call for call in process.calls(schema.LauncherHang) if call.begin.gone]
    hangs.sort(key=lambda call: call.when)
    seen: Set[int] = set()
    for call in hangs:
        seen.update(call.begin.gone)
    gone = [process for process in _unended(run) if lost or process.rank in seen]
    if not gone or of_kind(run, LEFT) is not None:
        return
    guilty = ranks(gone)
    if lost:
        reaction = say("{who} lost the connection", who=named(ranks(failure.process for failure in lost)))
        others = [failed(failure) for failure in lost[:2]]
    else:
        first = hangs[0]
        reaction = say(
            "its process had ended by {when}, while {who} hung",
            when=clock(first.when),
            who=named(first.begin.ranks),
        )
        others = [line(first.at, quoted(first.begin.said))]
    because = say(
        "{who:capital} left no last line: {rank} {last}; {known}. A killed process ends like this; no launcher's file says "
        "whether a signal ended it.",
        who=named(guilty),
        rank=say("it") if len(guilty) == 1 else say("rank {rank}", rank=gone[0].rank),
        last=last_seen(gone[0]),
        known=reaction,
    )
    if len(guilty) * 2 > max(len(run.ranks), run.expected or 0):
        yield RULE.undecided(because, explains=lost, then=_unseen(guilty))
        return
    last = [_last_line(process) for process in gone[:2]]
    yield RULE.found(
        ranks=guilty,
        verdict=because,
        evidence=[*last, *others],
        when=min(process.last_when for process in gone),
        confidence=MEDIUM,
        explains=lost,
        remedy=_unseen(guilty),
    )


def _last_line(process: LoggedProcess) -> Evidence:
    return line(process.last_at, say("the last line of rank {rank}", rank=process.rank))


def _unseen(guilty: List[int]) -> Text:
    return say(
        "Find out what ended {who}: the program that started it may print its exit code; the kernel's log shows whether memory "
        "ran out ({command}; memory.events of the container); a crash in a native library prints its "
        "line with PYTHONFAULTHANDLER=1. If you start the job with torchrun, the signal is recorded.",
        who=named(guilty),
        command=quoted("dmesg -T | grep -i 'out of memory'"),
    )


def _unended(run: Run) -> List[LoggedProcess]:
    """Return the ranks that neither run nor have a last line, and of whose end no launcher tells."""
    ends = deaths(run)
    explained = {*ends, *run.running, *(failure.rank for failure in run.failures if failure.uncaught)}
    return [process for process in run.processes if process.end is None and process.rank is not None and process.rank not in explained]


def _own(failure: Failed) -> bool:
    own = failure.fatal and failure.uncaught and not failure.consequence and failure.process is not None
    return own and not starting(failure) and not waited(failure) and not _COMPARED.search(failure.text)


def _losers(run: Run, when: float, guilty: Set[int]) -> List[int]:
    """Return the ranks that later reported a loss, stopped waiting, or were ended by the launcher."""
    later = [failure for failure in run.failures if failure.fatal and failure.when >= when]
    losers = {failure.rank for failure in later if failure.consequence == PEER_GONE or waited(failure)}
    ended = {death.rank for death in run.deaths if death.signal in ("SIGTERM", "SIGKILL")}
    return sorted(rank for rank in losers | ended if rank is not None and rank not in guilty)


def _loss(first: Failed, lost: List[int], losses: List[Failed]) -> Text:
    later = [failure for failure in losses if failure.when >= first.when]
    if not later:
        return say("the launcher then ended {who}", who=named(lost))
    return say(
        "{who} lost the connection {later} later",
        who=named(lost),
        later=lasting(later[0].when - first.when),
    )


def _remedy(first: Failed) -> Text:
    rank = first.rank if first.rank is not None else say("that failed")
    if _MEMORY.search(first.text):
        return say(
            "Reduce what rank {rank} holds in memory at {where}: compare its batch sizes, its caches and what else runs on its "
            "card or host with the other ranks.",
            rank=rank,
            where=place(first.site),
        )
    return say(
        "Fix what rank {rank} failed with at {where}; the other ranks' exceptions follow from it.",
        rank=rank,
        where=place(first.site),
    )
