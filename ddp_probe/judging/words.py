"""How sentences name ranks, places, counts and times; the rules and the report share these."""

from datetime import datetime, timezone
from typing import List, Optional, Sequence

from ddp_probe.shared.schema import Site

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def named(ranks: Sequence[int], limit: int = 12) -> str:
    """Return ranks as a sentence names them: rank 3; ranks 0-2, 5; a process, if no rank is known."""
    if not ranks:
        return "a process"
    return by_number(ranks, "rank ", "ranks ") + spans(ranks, limit)


def subject(ranks: Sequence[int], single: str = "", many: str = "") -> str:
    """Begin a sentence with ranks, and with the verb that fits their number."""
    verb = by_number(ranks, single, many)
    return capital(named(ranks)) + (" " + verb if verb else "")


def by_number(ranks: Sequence[int], one: str, many: str) -> str:
    """Return the word for one rank, or for several; a process without a rank counts as one."""
    return one if len(set(ranks)) < 2 else many


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun: 1 card, 2 cards, 0 cards."""
    return "%d %s" % (count, one if count == 1 else many or one + "s")


def capital(text: str) -> str:
    """Return a text as the beginning of a sentence: its first letter is a capital, the others stay."""
    return text[:1].upper() + text[1:]


def place(site: Optional[Site]) -> str:
    """Return a line of source as a sentence has it."""
    return "%s:%d" % (site.file, site.line) if site is not None and site.file else "an unknown line"


def at(site: Optional[Site]) -> str:
    """Return ` at FILE:LINE` to end a clause with; nothing if the line is not known."""
    return " at " + place(site) if site is not None and site.file else ""


def ordinal(number: int) -> str:
    """Return first for 0."""
    return _ORDINALS[number] if number < len(_ORDINALS) else "%dth" % (number + 1)


def spans(ranks: Sequence[int], limit: int = 12) -> str:
    """Return ranks with neighbours folded: 0-2, 5."""
    parts: List[str] = []
    begin: Optional[int] = None
    last = -2
    for rank in [*sorted(set(ranks)), -1]:
        if rank != last + 1:
            if begin is not None:
                parts.append(str(begin) if begin == last else "%d-%d" % (begin, last))
            begin = rank
        last = rank
    more = len(parts) - limit
    return ", ".join(parts[:limit]) + (" and " + counted(more, "more group") if more > 0 else "")


def listed(items: Sequence[str], limit: int) -> str:
    """Return the first of some items, and how many more there are."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (" and %d more" % more if more > 0 else "")


def cut(text: str, limit: int) -> str:
    """Return the first line of a text in at most this many characters; what is cut off leaves an ellipsis."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clock(when: float) -> str:
    """Return a time as hours, minutes and seconds, UTC; what a damaged file claims may be no time."""
    return datetime.fromtimestamp(when, tz=timezone.utc).strftime("%H:%M:%S UTC") if 0 <= when < 1e11 else "an unknown time"


def moment(when: float) -> str:
    """Return a time with its day, UTC."""
    return datetime.fromtimestamp(when, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC") if 0 <= when < 1e11 else "an unknown time"


def lasting(seconds: float) -> str:
    """Return a length of time: in milliseconds below a second, else in seconds."""
    return "%.0f ms" % (seconds * 1000) if seconds < 1 else "%.1f s" % seconds


def size(number: float) -> str:
    """Return bytes as a sentence has them."""
    return "%.1f GiB" % (number / (1 << 30)) if number >= 1 << 30 else "%.0f MiB" % (number / (1 << 20))
