"""A send or a receive has no partner: the other rank does not make the other half."""

from typing import Iterator, List, Optional

from ddp_probe.judging.ledgers import Standing, standings_of
from ddp_probe.judging.parted import (
    absent,
    deciding_evidence,
    departed,
    doubt,
    evidence,
    explained,
    of_kind,
    only_waits,
    stands,
    waiting,
)
from ddp_probe.judging.rule import MEDIUM, Evidence, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.shared.ledger_schema import PAIRED, SENDS
from ddp_probe.standing.splits import PEER, Split
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import place, spans

RULE = Rule(
    id="DDP635",
    slug="point-to-point-without-partner",
    cause="rank_divergent_control_flow",
    title="A send or a receive has no partner.",
    symptom="A pipeline hangs: one rank waits in send or recv, and the other rank of the pair is somewhere else.",
    evidence="The ledgers of both ranks: the one that waits has made more calls to this peer than the peer has made to it. Or each is in the call "
    "that matches the other's, and neither returns.",
    remedy=(
        "Give each send its recv, with the same peers and in an order in which the two ranks do not wait for each other; isend, irecv and "
        "batch_isend_irecv help."
    ),
    restart="no",  # The calls stand in the code.
)


def check(run: Run) -> Iterator[Finding]:
    """Name the rank that does not come to its half if it is in no call itself; else both ranks of the pair."""
    split = of_kind(run, PEER)
    if not only_waits(run):
        return
    if split is None:
        yield from _apart(run)
        return
    other = _other_half(run, split)
    half = ""
    if other is not None:
        where = standings_of(run).ranks[other].where()
        half = say(" Rank {rank} is {where}: one of them may name the wrong rank.", rank=other, where=where)
    match = say(
        "Match the {call} of rank {here} with a call on rank {there}, or remove it; both need the same number of calls, in the same order.",
        call=split.what,
        here=spans(split.here),
        there=spans(split.there),
    )
    shown = [*_statement(run, split), *evidence(run, split)]
    yield RULE.found(
        ranks=split.blame,
        verdict=say(
            "{waiting:capital}; {absent}.{departed}{half}{doubt}",
            waiting=waiting(run, split),
            absent=absent(run, split),
            departed=departed(split),
            half=half,
            doubt=doubt(run, split),
        ),
        evidence=[*shown, *([stands(run, other)] if other is not None else [])],
        when=split.when,
        remedy=joined([_look_first(run, split), match]),
        explains=explained(run),
    )


def _statement(run: Run, split: Split) -> List[Evidence]:
    return deciding_evidence(run, split.departure.rank, split.deciding) if split.departure is not None else []


def _look_first(run: Run, split: Split) -> str:
    """Begin the remedy with the place of a rank that is in no call: it may be stuck there."""
    other = standings_of(run).ranks.get(split.there[0])
    own = other.own if other is not None and other.inside is None and other.left is None else None
    if own is None:
        return ""
    return say(
        "Find out why rank {rank} stays at {where}. If it should be there, it lacks a call.",
        rank=split.there[0],
        where=place(own.site),
    )


def _apart(run: Run) -> Iterator[Finding]:
    """Name the pairs of which each rank is in the other's half for long: the ledgers agree, so it is something that they do not hold."""
    seen = standings_of(run)
    for rank, standing in seen.ranks.items():
        peer = seen.ranks.get(standing.inside.peer) if standing.inside is not None and standing.inside.op in SENDS else None
        if peer is None or not _is_half(peer, standing) or min(standing.lasted(), peer.lasted()) < seen.patience:
            continue
        yield RULE.found(
            ranks=sorted((rank, peer.rank)),
            verdict=say(
                "Rank {rank} is {where}; rank {peer} is {peer_where}. The two calls match, and both ranks have been in them for {seconds:.0f} s: "
                "either their tags differ, which ledgers do not record, or the two ranks cannot reach each other.",
                rank=rank,
                where=standing.where(),
                peer=peer.rank,
                peer_where=peer.where(),
                seconds=min(standing.lasted(), peer.lasted()),
            ),
            evidence=[stands(run, rank), stands(run, peer.rank)],
            when=max(standing.since(), peer.since()),
            remedy=say("Give both calls the same tag. If the tags are equal, check whether the two ranks can reach each other."),
            explains=explained(run),
            confidence=MEDIUM,
        )


def _is_half(receiver: Standing, sender: Standing) -> bool:
    """Tell whether a rank is in the receive that belongs to the send in which another one is."""
    one, other = receiver.inside, sender.inside
    if one is None or other is None or one.op not in PAIRED or one.op in SENDS or receiver.left is not None or sender.left is not None:
        return False
    return one.peer == sender.rank and one.seq == other.seq and one.group is not None and other.group is not None and one.group.id == other.group.id


def _other_half(run: Run, split: Split) -> Optional[int]:
    """Return a rank that waits to send to the receiver, or to receive from the sender."""
    for rank, standing in standings_of(run).ranks.items():
        inside = standing.inside
        waits = inside is not None and inside.op in PAIRED and inside.peer in split.here and rank not in split.there
        if inside is not None and waits and (inside.op in SENDS) != (split.what in SENDS):
            return rank
    return None
