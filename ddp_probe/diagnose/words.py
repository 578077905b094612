"""How sentences name ranks and times; the rules and the report speak alike."""

from datetime import datetime, timezone
from typing import List, Optional, Sequence


def named(ranks: Sequence[int], limit: int = 12) -> str:
    """Return ranks as a sentence's subject: rank 3; ranks 0-2, 5."""
    if not ranks:
        return "A process"
    return ("rank " if len(ranks) == 1 else "ranks ") + spans(ranks, limit)


def subject(ranks: Sequence[int], one: str = "", many: str = "") -> str:
    """Begin a sentence with ranks, and with the verb that fits their number."""
    who = named(ranks)
    verb = one if len(ranks) == 1 else many
    return who[:1].upper() + who[1:] + (" " + verb if verb else "")


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
    return ", ".join(parts[:limit]) + (" and %d more groups" % more if more > 0 else "")


def listed(items: Sequence[str], limit: int) -> str:
    """Return the first of some items, and how many more there are."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (" and %d more" % more if more > 0 else "")


def cut(text: str, limit: int) -> str:
    """Return the first line of a text in at most so many characters; what is cut off leaves an ellipsis."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clock(when: float) -> str:
    """Return a time as hours, minutes and seconds, UTC."""
    return datetime.fromtimestamp(when, tz=timezone.utc).strftime("%H:%M:%S UTC")
