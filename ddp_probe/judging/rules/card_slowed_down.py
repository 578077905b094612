"""A card has lowered its clock because of heat or power, or has had memory errors, while the job ran."""

from typing import Iterator, List, Set, Tuple

from ddp_probe.judging.card_use import CardsOfHost, loads_by_host
from ddp_probe.judging.rule import WARNING, Finding, Rule, shown
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import CardLoad
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, quoted

_LOOKS, _SHARE = 3, 0.1
# A card at its power cap does as it should: it is not named.
_WORDS = {
    "hw_slowdown": say("slowed down by its hardware"),
    "sw_thermal": say("slowed down because it is hot"),
    "hw_thermal": say("slowed down because it is too hot"),
    "power_brake": say("slowed down by the power supply"),
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
    restart="elsewhere",  # Heat, power and memory errors belong to this card.
    needs=("cards.state",),
    severity=WARNING,
)


def check(run: Run) -> Iterator[Finding]:
    """Look at the last answer of each host: its sums cover the whole job."""
    for host in loads_by_host(run):
        troubled = []
        for card in host.last.begin.cards:
            reasons = list(_why(card, host.looks))
            if reasons:
                troubled.append((card, listed(reasons, by="; ")))
        if troubled:
            yield _finding(host, troubled)


def _why(card: CardLoad, looks: int) -> Iterator[Text]:
    for reason, times in card.throttled_looks.items():
        if reason in _WORDS and times >= max(_LOOKS, _SHARE * looks):
            peak = card.temperature_peak
            yield say(
                "{why} ({reason}) in {times} of {looks} looks{heat}",
                why=_WORDS[reason],
                reason=reason,
                times=times,
                looks=looks,
                heat=say(", at up to {degrees:.0f} °C", degrees=peak) if peak else "",
            )
    if card.ecc is not None and card.ecc > (card.ecc_before or 0):
        yield say(
            "{errors} ECC errors that could not be corrected, {before} at the first look",
            errors=card.ecc,
            before=card.ecc_before or 0,
        )
    if card.health:
        yield say("its health is '{health}'", health=quoted(card.health))


def _finding(host: CardsOfHost, troubled: List[Tuple[CardLoad, Text]]) -> Finding:
    ranks: Set[int] = set()
    parts = []
    for card, why in troubled:
        on_it = host.on(card)
        ranks.update(on_it)
        if on_it:
            parts.append(say("card {card} ({who}): {why}", card=card.index, who=named(on_it), why=why))
        else:
            parts.append(say("card {card}: {why}", card=card.index, why=why))
    return RULE.found(
        ranks=sorted(ranks),
        verdict=say(
            "On {host}, by {tool}: {cards}.",
            host=host.host,
            tool=host.tool,
            cards=listed(parts, by="; "),
        ),
        evidence=[shown(host.last, part) for part in parts],
        when=host.last.when,
    )
