"""One card of a host computes for all of its ranks, and the others idle."""

from typing import Iterator, List, Optional, Tuple

from ddp_probe.judging.card_use import CardsOfHost, loads_by_host
from ddp_probe.judging.rule import WARNING, Finding, Rule, shown
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import CardLoad
from ddp_probe.wording.text import say

_LOOKS, _BUSY, _IDLE = 3, 20.0, 2.0

RULE = Rule(
    id="DDP317",
    slug="one-card-busy",
    cause="one_card_busy",
    title="One card of a host is busy while the others are idle, although several ranks run there.",
    symptom="A job with eight ranks is as slow as with one, and the vendor's tool shows load on one card only.",
    evidence=(
        "cards.state of the launcher: since the job began, one card has been busy for at least 20 % of the time on average, and each other "
        "card for at most 2 %."
    ),
    remedy=(
        "Check which device holds each rank's model: see the columns 'parameters' and 'card' of the report. If all models are on one card, "
        "call torch.cuda.set_device(local_rank), or the accelerator's own module, before the model is moved, and leave the number out of the "
        "device. If the others are on the CPU, move their models; if only one rank trains while the others wait, look at what it does."
    ),
    restart="no",  # The same lines put the work on that card again.
    needs=("cards.state",),
    severity=WARNING,
    yields_to=(
        "set-device-missing",
        "card-number-fixed",
        "more-processes-than-cards",
        "visible-cards-wrong",
        "memory-on-another-card",
        "processes-on-one-card",
        "model-never-moved",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the means of the cards, host by host."""
    for host in loads_by_host(run):
        means = sorted(((card.utilisation_mean, card) for card in host.last.begin.cards if card.utilisation_mean is not None), key=_mean)
        busy = _busy(host, means)
        if busy is not None:
            yield RULE.found(
                ranks=host.on(busy),
                verdict=say(
                    "Card {card} of {host} is busy {busy:.0f} % of the time and none of the {others} others more than {idle:.0f} %, "
                    "while {ranks} ranks run there, according to {tool} in {looks} looks.",
                    card=busy.index,
                    host=host.host,
                    busy=means[-1][0],
                    others=len(means) - 1,
                    idle=means[-2][0],
                    ranks=len(host.ranks),
                    tool=host.tool,
                    looks=host.looks,
                ),
                evidence=[shown(host.last, say("{busy:.1f} % on card {card}", busy=mean, card=card.index)) for mean, card in means[:-4:-1]],
                when=host.answers[0].when,
            )


def _mean(pair: Tuple[float, CardLoad]) -> float:
    return pair[0]


def _busy(host: CardsOfHost, means: List[Tuple[float, CardLoad]]) -> Optional[CardLoad]:
    if len(host.ranks) < 2 or not host.used or len(means) < 2 or host.looks < _LOOKS or means[-1][0] < _BUSY or means[-2][0] > _IDLE:
        return None
    return means[-1][1]
