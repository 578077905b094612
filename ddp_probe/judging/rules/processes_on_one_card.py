"""The vendor's tool lists several ranks of a host on one card."""

from typing import Iterator, List, NamedTuple

from ddp_probe.judging import card_use
from ddp_probe.judging.card_use import CardsOfHost, loads_by_host
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Rule, shown
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import CardLoad
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, size

RULE = Rule(
    id="DDP315",
    slug="processes-on-one-card",
    cause="set_device_missing",
    title="The vendor's tool lists several ranks of a host on one card.",
    symptom="One card runs out of memory before the others do, or does all of the work.",
    evidence=(
        "cards.state of the launcher: the processes that the tool lists on one card are those of several ranks, and there are as many cards as "
        "ranks or more. If each of them is on another card too, it has only a context there, of a few hundred MiB."
    ),
    remedy=(
        "Choose the card before anything else touches one: torch.cuda.set_device(local_rank), or the accelerator's own module, before "
        "init_process_group and before the first load, and load checkpoints with map_location='cpu'."
    ),
    restart="no",  # The ranks choose the same card again.
    needs=("cards.state",),
    severity=WARNING,
    yields_to=(
        "set-device-missing",
        "card-number-fixed",
        "more-processes-than-cards",
        "visible-cards-wrong",
        "map-location-missing",
        "memory-on-another-card",
    ),
)


class _Crowd(NamedTuple):
    card: CardLoad
    ranks: List[int]
    guests: List[int]  # Those that have a card of their own too.


def check(run: Run) -> Iterator[Finding]:
    """Compare, host by host, the tool's processes of each card with the ranks."""
    for host in loads_by_host(run):
        if len(host.ranks) <= len(host.last.begin.cards) and not card_use.own(host.ranks):
            crowds = (_crowd(host, card) for card in host.last.begin.cards)
            shared = next((crowd for crowd in crowds if len(crowd.ranks) > 1), None)
            if shared is not None:
                yield _finding(host, shared, run)


def _crowd(host: CardsOfHost, card: CardLoad) -> _Crowd:
    pids = {process.rank: process.pid for process in host.ranks if process.rank is not None}
    here = host.processes(card.index)
    elsewhere = set().union(*(host.processes(other.index) for other in host.last.begin.cards if other.index != card.index))
    ranks = sorted(rank for rank, pid in pids.items() if pid and pid in here)
    return _Crowd(card, ranks, [rank for rank in ranks if pids[rank] in elsewhere])


def _finding(host: CardsOfHost, crowd: _Crowd, run: Run) -> Finding:
    card, guests = crowd.card, crowd.guests
    astray = guests if guests and len(guests) < len(crowd.ranks) else crowd.ranks
    held = [bytes_ for bytes_ in card.processes.values() if bytes_]
    alone = say("and on no other; {count} cards of the host are free", count=_free(host))
    lost = [failure for failure in card_use.lost(run) if failure.rank in crowd.ranks and not guests]
    return RULE.found(
        ranks=astray,
        verdict=say(
            "{who:capital} {who:is|are} on card {card} of {host}{held}, {beside}, as {tool} lists them.",
            who=named(astray),
            card=card.index,
            host=host.host,
            held=say(", {size} in all", size=size(sum(held))) if held else "",
            beside=say("beside cards of their own") if guests else alone,
            tool=host.tool,
        ),
        evidence=[
            shown(
                host.last,
                say("{count} processes on card {card}", count=len(card.processes), card=card.index),
            )
        ],
        when=host.answers[0].when,
        explains=lost,
        severity=ERROR if lost else WARNING,
    )


def _free(host: CardsOfHost) -> int:
    return sum(not host.processes(card.index) for card in host.last.begin.cards)
