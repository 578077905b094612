"""A connection between hosts carries nothing while all ranks wait, as looks from outside show."""

from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.looks import Stance, found, others, stances, waiting
from ddp_probe.judging.rule import LOW, MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, quoted

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
    restart="unknown",  # A link that is down, or an interface that the settings choose.
    needs=("process.look",),
)


class _Stuck(NamedTuple):
    """A connection that carries nothing."""

    one: Stance
    peer: str
    other: Optional[int]  # The rank at its other end, if it was looked at.
    how: Text


def check(run: Run) -> Iterator[Finding]:
    """Name the rank that all of these connections have in common; else both ends."""
    inside = waiting(run)
    stuck: List[_Stuck] = []
    if len(inside) == len(stances(run)) and not others(run):
        ends = _ends(run)
        for stance in inside:
            stuck += _stuck(stance, ends)
    if not stuck:
        return
    count: Counter[int] = Counter()
    for connection in stuck:
        count.update({rank for rank in (connection.one.rank, connection.other) if rank is not None})
    alone = [rank for rank, times in count.items() if times == len(stuck) > 1 and len(count) > 2]
    guilty = [stance for stance in inside if stance.rank in (alone or count)]
    how = say(" ({connections}, in each look)", connections=listed([connection.how for connection in stuck], 3))
    masters = {process.started.environment.get("MASTER_PORT") for process in run.processes}
    sure = any(connection.other is not None or connection.peer.rpartition(":")[2] in masters for connection in stuck)
    rest = [stance for stance in inside if stance not in guilty]
    yield found(RULE, guilty, rest, how, confidence=MEDIUM if sure else LOW)


def _stuck(stance: Stance, ends: Dict[Tuple[int, int], Tuple[int, int]]) -> Iterator[_Stuck]:
    for (peer, port), same in stance.connections().items():
        other, unread = ends.get((int(peer.rpartition(":")[2]), port), (None, 0))
        if other == stance.rank or peer.startswith(_LOOPBACK) or unread:
            continue
        if same[0].asks:
            template = "{who} {who:asks|ask} for a connection with {peer} and {who:has|have} no answer"
            asks = say(template, who=named([stance.rank]), peer=quoted(peer))
            yield _Stuck(stance, peer, other, asks)
        elif same[0].unsent and same[-1].unsent >= same[0].unsent:
            unsent = say(
                "{count} bytes of rank {rank} to {peer} are not acknowledged by {other}",
                count=same[-1].unsent,
                rank=stance.rank,
                peer=quoted(peer),
                other=named([other]) if other is not None else say("the other side"),
            )
            yield _Stuck(stance, peer, other, unsent)


def _ends(run: Run) -> Dict[Tuple[int, int], Tuple[int, int]]:
    """Return the rank and its unread bytes by the ports of a connection, its own first."""
    ends: Dict[Tuple[int, int], Tuple[int, int]] = {}
    for stance in stances(run):
        for (peer, port), same in stance.connections().items():
            ends[port, int(peer.rpartition(":")[2])] = stance.rank, min(connection.unread for connection in same)
    return ends
