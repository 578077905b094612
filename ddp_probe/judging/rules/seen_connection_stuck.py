"""A connection between hosts carries nothing while all ranks wait, as looks from outside show."""

from collections import Counter
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ddp_probe.judging.looks import Stance, found, others, stances, waiting
from ddp_probe.judging.rule import LOW, MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.words import listed

_LOOPBACK = ("127.", "::1:")

RULE = Rule(
    id="DDP695",
    slug="seen-connection-stuck",
    cause="wrong_network_interface",
    title="A connection between hosts carries nothing while all ranks wait.",
    symptom="The job hangs between hosts, at its start or in the middle; each host works on its own.",
    evidence=(
        "The kernel's tables: in each look the same bytes of a connection are not acknowledged and the other side has nothing unread; or a "
        "connection is asked for and not answered. A rank that does not read has bytes unread: then it is not the network."
    ),
    remedy=(
        "Look at the network between these hosts: ping, firewall, MTU, a link that is down; NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME select "
        "another interface."
    ),
    needs=("process.look",),
)


class _Stuck(NamedTuple):
    """A connection that carries nothing."""

    one: Stance
    peer: str
    other: Optional[int]  # The rank at its other end, if it was looked at.
    said: str


def check(run: Run) -> Iterator[Finding]:
    """Name the rank that all of these connections have in common; else both ends."""
    inside = waiting(run)
    stuck = [each for one in inside for each in _stuck(one, _ends(run))] if len(inside) == len(stances(run)) and not others(run) else []
    if not stuck:
        return
    count = Counter(rank for each in stuck for rank in {each.one.rank, each.other} - {None})
    alone = [rank for rank, times in count.items() if times == len(stuck) > 1 and len(count) > 2]
    named = [one for one in inside if one.rank in (alone or count)]
    told = " (%s, in each look)" % listed([each.said for each in stuck], 3)
    masters = {process.started.environment.get("MASTER_PORT") for process in run.processes}
    sure = any(each.other is not None or each.peer.rpartition(":")[2] in masters for each in stuck)
    yield found(RULE, named, [one for one in inside if one not in named], told, confidence=MEDIUM if sure else LOW)


def _stuck(one: Stance, ends: Dict[Tuple[int, int], Tuple[int, int]]) -> Iterator[_Stuck]:
    for (peer, port), same in one.connections().items():
        other, unread = ends.get((int(peer.rpartition(":")[2]), port), (None, 0))
        if other == one.rank or peer.startswith(_LOOPBACK) or unread:
            continue
        whom = "rank %d" % other if other is not None else "the other side"
        if same[0].asks:
            yield _Stuck(one, peer, other, "rank %d asks for a connection with %s and has no answer" % (one.rank, peer))
        elif same[0].unsent and same[-1].unsent >= same[0].unsent:
            yield _Stuck(one, peer, other, "%d bytes of rank %d to %s are not acknowledged by %s" % (same[-1].unsent, one.rank, peer, whom))


def _ends(run: Run) -> Dict[Tuple[int, int], Tuple[int, int]]:
    """Return the rank and its unread bytes by the ports of a connection, its own first."""
    found: Dict[Tuple[int, int], Tuple[int, int]] = {}
    for one in stances(run):
        for (peer, port), same in one.connections().items():
            found[port, int(peer.rpartition(":")[2])] = one.rank, min(each.unread for each in same)
    return found
