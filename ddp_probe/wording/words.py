"""How sentences name ranks, places, counts and times."""

from typing import TYPE_CHECKING, Any, Optional, Sequence

from ddp_probe.wording.text import Text, say
from ddp_probe.wording.values import Duration, Items, Moment, Place, Quote, Ranks, ShellCommand, Size

if TYPE_CHECKING:
    from ddp_probe.shared.schema import Site

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def named(ranks: Sequence[int], limit: int = 12) -> Text:
    """Return ranks as a sentence names them: rank 3; ranks 0-2, 5; a process, if no rank is known."""
    return say("{it}", it=Ranks(ranks, limit))


ONE = named([])
"""Stands for the ranks that a predicate is about, as in {they:is|are}, until a page names them: about(text, they=named(ranks))."""


def spans(ranks: Sequence[int], limit: int = 12) -> Text:
    """Return ranks without the word, neighbours folded: 0-2, 5."""
    return say("{it}", it=Ranks(ranks, limit, bare=True))


def counted(count: int, one: str, many: str = "") -> Text:
    """Return a number with its noun: 1 card, 2 cards, 0 cards."""
    return Text("{it} " + (one if count == 1 else many or one + "s"), {"it": count})


def capital(text: str) -> Text:
    """Return a text as the beginning of a sentence: its first letter is a capital, the others stay."""
    return say("{it:capital}", it=text)


def place(site: "Optional[Site]") -> Text:
    """Return a line of source as a sentence has it."""
    return say("{it}", it=Place(site))


def at(site: "Optional[Site]") -> str:
    """Return ` at FILE:LINE` to end a clause with; nothing if the line is not known."""
    return say(" at {it}", it=Place(site)) if site is not None and site.file else ""


def within(function: str) -> str:
    """Return ` in FUNCTION` to end a clause with; nothing for the code of a module, or of a function without a name."""
    return say(" in {function}", function=function) if function and not function.startswith("<") else ""


def ordinal(number: int) -> Text:
    """Return first for 0."""
    return say(_ORDINALS[number]) if number < len(_ORDINALS) else say("{it}th", it=number + 1)


def listed(items: Sequence[Any], limit: int = 0, by: str = ", ") -> Text:
    """Return the first of some items, and how many more there are."""
    return say("{it}", it=Items(items, limit, by))


def quoted(text: Any) -> Text:
    """Return what a program printed, or what stands in the job's source: it is the same in each language."""
    return say("{it}", it=Quote(text))


def command(*words: str) -> Text:
    """Return a command of this package by its words, whole: none of them stands for what a person knows."""
    return say("{it}", it=ShellCommand(" ".join(("python -m ddp_probe", *words))))


def cut(text: str, limit: int) -> Text:
    """Return the first line of what a program printed in at most this many characters; what is cut off leaves an ellipsis."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return quoted(line if len(line) <= limit else line[: limit - 1].rstrip() + "…")


def clock(when: float) -> Text:
    """Return a time as hours, minutes and seconds; what a damaged file claims may be no time."""
    return say("{it}", it=Moment(when))


def moment(when: float) -> Text:
    """Return a time with its day."""
    return say("{it}", it=Moment(when, with_day=True))


def lasting(seconds: float) -> Text:
    """Return a length of time: in milliseconds below a second, else in seconds."""
    return say("{it}", it=Duration(seconds))


def size(number: float) -> Text:
    """Return bytes as a sentence has them."""
    return say("{it}", it=Size(number))
