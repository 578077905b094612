"""One rank failed first and the others lost it: which rank, if no other rule knows why."""

import re
from typing import Iterator, List, Set

from ddp_probe.judging._waits import PEER_GONE, starting, waited
from ddp_probe.judging._who import ranks
from ddp_probe.judging.rule import MEDIUM, Finding, Printed, Rule, failed
from ddp_probe.judging.words import capital, named, place, spans
from ddp_probe.reading.model import Failed, Run

# A rank that says this compared itself with another one: it did not fail before that one.
_COMPARED = re.compile(r"DDP expects same model across all ranks|appears not to match (?:sizes|strides) of the same param")
_MEMORY = re.compile(r"out of memory|can't allocate memory|Cannot allocate memory|MemoryError", re.IGNORECASE)

RULE = Rule(
    id="DDP621",
    slug="first-to-fail",
    cause="rank_stopped_participating",
    title="One rank failed first, and the others lost it.",
    symptom="Different tracebacks on different ranks; most of them report a closed connection.",
    evidence="The earliest exception that does not report the loss of another rank, on a minority of the ranks.",
    remedy="Fix the exception of the rank that failed first; the others are its consequences.",
    needs=("process.end",),
    printed=(
        Printed(
            r"Connection (?:closed|reset) by peer|[Rr]emote process exited|ncclRemoteError",
            unless=r"init_process_group|rendezvous|_store_based_barrier|TCPStore|urllib|requests/|http|ssl\.py|socket\.py|hub\.py",
            says="The log says that a peer is gone, and does not say why: look for the rank that ended first.",
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
    yields_to=("own-exception",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the first exception that a minority of the ranks raised by themselves, if the others report a loss."""
    own = [failure for failure in run.failures if _own(failure)]
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
        verdict="%s failed first, at %s, with %s; %s."
        % (capital(named(guilty)), place(first.site), first.said(200).rstrip("."), _loss(first, lost, losses)),
        evidence=[failed(failure) for failure in [*own[:3], *losses[:2]]],
        when=first.when,
        explains=[*own, *losses],
        confidence=MEDIUM,
        remedy=_remedy(first),
    )


def _own(failure: Failed) -> bool:
    own = failure.fatal and failure.uncaught and not failure.consequence and failure.process is not None
    return own and not starting(failure) and not waited(failure) and not _COMPARED.search(failure.text)


def _losers(run: Run, when: float, guilty: Set[int]) -> List[int]:
    """Return the ranks that later reported a loss, stopped waiting, or were ended by the launcher."""
    told = {
        failure.rank for failure in run.failures if failure.fatal and failure.when >= when and (failure.consequence == PEER_GONE or waited(failure))
    }
    ended = {death.rank for death in run.deaths if death.signal in ("SIGTERM", "SIGKILL")}
    return sorted(rank for rank in told | ended if rank is not None and rank not in guilty)


def _loss(first: Failed, lost: List[int], losses: List[Failed]) -> str:
    later = [failure for failure in losses if failure.when >= first.when]
    if not later:
        return "the launcher then ended %s" % named(lost)
    return "%s lost it %.0f ms later" % (named(lost), (later[0].when - first.when) * 1000)


def _remedy(first: Failed) -> str:
    rank = spans([first.rank]) if first.rank is not None else "that failed"
    if _MEMORY.search(first.text):
        return (
            "Reduce what rank %s holds in memory at %s: compare its batch sizes, its caches and what else runs on its card or host with the "
            "other ranks."
        ) % (rank, place(first.site))
    return "Fix what rank %s failed with at %s; the other ranks' exceptions follow from it." % (rank, place(first.site))
