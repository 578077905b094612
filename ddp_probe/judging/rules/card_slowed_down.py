"""A card has lowered its clock because of heat or power, or has had memory errors, while the job ran."""

from typing import Iterator, List, Tuple

from ddp_probe.judging.card_use import CardsOfHost, loads_by_host
from ddp_probe.judging.rule import WARNING, Finding, Rule, shown
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import CardLoad
from ddp_probe.wording.words import named

_LOOKS, _SHARE = 3, 0.1
# A card at its power cap does as it should: it is not named.
_WORDS = {
    "hw_slowdown": "slowed down by its hardware",
    "sw_thermal": "slowed down because it is hot",
    "hw_thermal": "slowed down because it is too hot",
    "power_brake": "slowed down by the power supply",
}

RULE = Rule(
    id="DDP235",
    slug="card-slowed-down",
    cause="card_slowed_down",
    title="A card was slowed down by heat or power, or had memory errors, while the job ran.",
    symptom="All ranks are slower than they should be, because each step waits for the slowest card.",
    evidence=(
        "cards.state of the launcher: the vendor's tool gives a reason for a lowered clock in at least three looks and a tenth of all; or "
        "counts ECC errors that it could not correct and that were not there at the first look; or reports the card's health as something "
        "other than OK."
    ),
    remedy=(
        "Have the host's owner check that card: air flow, fans and power supply; after ECC errors that could not be corrected, reset the card "
        "or replace it. Until then leave it out: name the other cards in CUDA_VISIBLE_DEVICES (or the accelerator's own variable), and start "
        "one rank fewer."
    ),
    needs=("cards.state",),
    severity=WARNING,
)


def check(run: Run) -> Iterator[Finding]:
    """Look at the last answer of each host: its sums cover the whole job."""
    for host in loads_by_host(run):
        told = [(card, why) for card in host.last.begin.cards for why in ["; ".join(_why(card, host.looks))] if why]
        if told:
            yield _finding(host, told)


def _why(card: CardLoad, looks: int) -> Iterator[str]:
    for reason, times in card.throttled_looks.items():
        if reason in _WORDS and times >= max(_LOOKS, _SHARE * looks):
            heat = ", at up to %.0f °C" % card.temperature_peak if card.temperature_peak else ""
            yield "%s (%s) in %d of %d looks%s" % (_WORDS[reason], reason, times, looks, heat)
    if card.ecc is not None and card.ecc > (card.ecc_before or 0):
        yield "%d ECC errors that could not be corrected, %d at the first look" % (card.ecc, card.ecc_before or 0)
    if card.health:
        yield "its health is '%s'" % card.health


def _finding(host: CardsOfHost, told: List[Tuple[CardLoad, str]]) -> Finding:
    ranks = sorted({rank for card, _ in told for rank in host.on(card)})
    parts = ["card %d%s%s" % (card.index, _of(host.on(card)), why) for card, why in told]
    return RULE.found(
        ranks=ranks,
        verdict="On %s, by %s: %s." % (host.host, host.tool, "; ".join(parts)),
        evidence=[shown(host.last, part) for part in parts],
        when=host.last.when,
    )


def _of(ranks: List[int]) -> str:
    return " (%s): " % named(ranks) if ranks else ": "
