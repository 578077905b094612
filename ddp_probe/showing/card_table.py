"""Prints what the vendor's tool says of the cards, below the table of `watch --cards`."""

from typing import Iterator, Tuple

from ddp_probe.shared.schema import CardLoad, CardsState
from ddp_probe.showing import safe
from ddp_probe.showing.event_line import cut
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, columns
from ddp_probe.showing.paint import QUIET, STRONG, WARN
from ddp_probe.wording.words import size

_LINES = 16


def card_lines(state: CardsState, width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield a line for each card, or what the tool printed if that is not known as data."""
    if state.problem:
        yield StyledLine(cut(safe.line(state.problem), width), WARN)
    if state.cards:
        head, *texts = columns(
            [tuple(say(word) for word in ("card", "load", "memory", "heat", "processes", "state")), *(_card_cells(card, say) for card in state.cards)]
        )
        yield StyledLine(cut("%s  (%s)" % (head, state.tool), width), STRONG)
        for card, text in zip(state.cards, texts):
            yield StyledLine(cut(text, width), WARN if _trouble(card, say) else "")
    else:
        for text in state.text.splitlines()[:_LINES]:
            yield StyledLine(cut(safe.line(text), width), QUIET)


def _card_cells(card: CardLoad, say: Language) -> Tuple[str, ...]:
    held = "-" if card.memory is None else size(card.memory)
    there = "" if card.memory_total is None else " of " + size(card.memory_total)
    return (
        str(card.index),
        "-" if card.utilisation is None else "%.0f %%" % card.utilisation,
        held + there,
        "-" if card.temperature is None else "%.0f °C" % card.temperature,
        " ".join(card.processes) or "-",
        _trouble(card, say) or "-",
    )


def _trouble(card: CardLoad, say: Language) -> str:
    reasons = [reason for reason in card.throttled if reason != "power_cap"]
    if card.ecc:
        reasons.append(say("%d ECC errors") % card.ecc)
    return safe.line(", ".join(reasons + ([card.health] if card.health else [])))
