"""What a text may name: ranks, places, sizes, times, lists, quotations. Programs get each as it is."""

import math
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

if TYPE_CHECKING:  # A command that runs without the packages of the readers says something, too.
    from ddp_probe.shared.schema import Site

_OF_WORDS = ("capital", "clause")
_LATEST = 1e11  # The year 5138.
_HAN, _MARKS = ("\u3400", "\u9fff"), "，。：；、！？（）《》"
Translate = Callable[[str], str]
"""Gives a template in the reader's language; without a translation, the English one.

If it has a `zone`, times are in that, else in UTC.
"""
Show = Callable[[Any, str], str]
"""Gives the words of a value, such as a place, as a page shows them."""


class Value:
    """What stands in a named place of a text."""

    def written(self, translate: Translate) -> str:
        """Return it as a text has it."""
        raise NotImplementedError

    def number(self) -> int:
        """Return the number that decides between two words, as in {ranks:has|have}."""
        return 1

    def fact(self) -> Any:
        """Return it as JSON has it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.written(str)


class Ranks(Value):
    """Some ranks: rank 3; ranks 0-2, 5; a process, if no rank is known."""

    def __init__(self, ranks: Iterable[int], limit: int = 12, bare: bool = False) -> None:
        self.ranks = sorted(set(ranks))
        self._limit, self._bare = limit, bare

    def __reduce__(self) -> Tuple[Any, ...]:
        return Ranks, (self.ranks, self._limit, self._bare)

    def number(self) -> int:
        """Count the ranks; a process without a rank is one."""
        return len(self.ranks) or 1

    def written(self, translate: Translate) -> str:
        """Name them, with neighbours folded."""
        if self._bare:
            return self._listed(translate)
        if not self.ranks:
            return translate("a process")
        template = translate("rank {ranks}" if len(self.ranks) == 1 else "ranks {ranks}")
        return template.replace("{ranks}", self._listed(translate))

    def fact(self) -> List[int]:
        """Return the numbers."""
        return self.ranks

    def spans(self) -> List[str]:
        """Return the numbers, neighbours as one: 0-2, then 5."""
        spans: List[Tuple[int, int]] = []
        for rank in self.ranks:
            if spans and rank == spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], rank)
            else:
                spans.append((rank, rank))
        return [str(first) if first == last else "%d-%d" % (first, last) for first, last in spans]

    def _listed(self, translate: Translate) -> str:
        spans = self.spans()
        more = len(spans) - self._limit
        rest = ""
        if more > 0:
            rest = translate(" and {more} more group" if more == 1 else " and {more} more groups").replace("{more}", str(more))
        return translate(", ").join(spans[: self._limit]) + rest


class Place(Value):
    """A line of source."""

    def __init__(self, site: "Optional[Site]") -> None:
        self.site = site if site is not None and site.file else None

    def __reduce__(self) -> Tuple[Any, ...]:
        return Place, (self.site,)

    def written(self, translate: Translate) -> str:
        """Return FILE:LINE."""
        if self.site is None:
            return translate("an unknown line")
        return "%s:%d" % (self.site.file, self.site.line)

    def fact(self) -> Optional[Dict[str, Any]]:
        """Return the file, the line and the function."""
        if self.site is None:
            return None
        return {"file": self.site.file, "line": self.site.line, "function": self.site.function}


_UNITS = (("%.1f TiB", 1 << 40), ("%.1f GiB", 1 << 30), ("%.0f MiB", 1 << 20), ("%.0f KiB", 1 << 10))


class Size(Value):
    """A number of bytes: 3.2 GiB, 12 MiB, 1 byte. No other formatter of sizes is in the package."""

    def __init__(self, count: float) -> None:
        self._count = count

    def __reduce__(self) -> Tuple[Any, ...]:
        return Size, (self._count,)

    def written(self, _: Translate) -> str:
        """Return it in the largest unit that it fills."""
        for form, factor in _UNITS:
            if self._count >= factor:
                return form % (self._count / factor)
        return "1 byte" if self._count == 1 else "%d bytes" % self._count

    def fact(self) -> Dict[str, Any]:
        """Return the bytes."""
        return {"bytes": self._count}


class Duration(Value):
    """A length of time: in milliseconds below a second, else in seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __reduce__(self) -> Tuple[Any, ...]:
        return Duration, (self._seconds,)

    def written(self, _: Translate) -> str:
        """Return it with its unit."""
        if self._seconds < 1:
            return "%.0f ms" % (self._seconds * 1000)
        return "%.1f s" % self._seconds

    def fact(self) -> Dict[str, Any]:
        """Return the seconds."""
        return {"seconds": self._seconds}


class Moment(Value):
    """A time of the clock, in the reader's zone; what a damaged file claims may be no time."""

    def __init__(self, when: float, with_day: bool = False) -> None:
        self._when, self._with_day = when, with_day

    def __reduce__(self) -> Tuple[Any, ...]:
        return Moment, (self._when, self._with_day)

    def written(self, translate: Translate) -> str:
        """Return hours, minutes and seconds; with the day if asked for."""
        form = "%Y-%m-%d %H:%M:%S" if self._with_day else "%H:%M:%S"
        zone = getattr(translate, "zone", timezone.utc)
        return time_of(self._when, zone, form) or translate("an unknown time")

    def fact(self) -> Dict[str, Any]:
        """Return the seconds since 1970."""
        return {"time": self._when}


def time_of(when: float, zone: Optional[tzinfo], form: str, is_short: bool = False) -> str:
    """Return a time with its offset: 21:23:44+08:00, 13:23:44 UTC; empty if it is not a time.

    Without a zone, it is that of the host. There is no space in front of an offset, at which a
    line could be broken. The short form of UTC is 13:23:44Z.
    """
    if not 0 <= when < _LATEST:
        return ""
    moment = datetime.fromtimestamp(when, tz=timezone.utc).astimezone(zone)
    digits = moment.strftime("%z")
    utc = "Z" if is_short else " UTC"
    offset = "%s:%s" % (digits[:3], digits[3:5])
    return moment.strftime(form) + (offset if moment.utcoffset() else utc)


class Quote(Value):
    """What a program printed, or what stands in the job's source: the same in each language."""

    def __init__(self, text: str) -> None:
        self._text = str(text)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Quote, (self._text,)

    def written(self, _: Translate) -> str:
        """Return it as it is."""
        return self._text

    def fact(self) -> str:
        """Return it as it is."""
        return self._text


class ShellCommand(Quote):
    """A command of this package, whole, as a shell takes it: the same in each language."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return ShellCommand, (self._text,)


class Items(Value):
    """A list of texts: the first of them, and how many more there are."""

    def __init__(self, items: Sequence[Any], limit: int = 0, by: str = ", ") -> None:
        self.items, self._limit, self._by = list(items), limit or len(items), by

    def __reduce__(self) -> Tuple[Any, ...]:
        return Items, (self.items, self._limit, self._by)

    def of(self, items: Sequence[Any]) -> "Items":
        """Return the list with other items in the same places."""
        return Items(items, self._limit, self._by)

    def number(self) -> int:
        """Count the items."""
        return len(self.items)

    def written(self, translate: Translate) -> str:
        """Return them with the separator between them."""
        return self.shown(translate, as_it_is)

    def shown(self, translate: Translate, show: Show) -> str:
        """Return them, each value in them as a page shows it."""
        parts: List[str] = []
        for item in self.items[: self._limit]:
            if parts:
                parts.append(translate(self._by))
            parts.append(written(item, translate, show=show))
        more = len(self.items) - self._limit
        if more > 0:
            parts.append(translate(" and {more} more").replace("{more}", str(more)))
        return "".join(parts) if translate is str else together(parts)

    def fact(self) -> List[Any]:
        """Return all of them."""
        return [fact(item) for item in self.items]


def as_it_is(_: Any, words: str) -> str:
    """Return the words of a value: the page does not change them."""
    return words


def written(value: Any, translate: Translate, spec: str = "", show: Show = as_it_is) -> str:
    """Return a value as a text has it; `spec` is what follows the colon in a named place."""
    if "|" in spec:
        singular, plural = spec.split("|")
        return singular if number(value) == 1 else plural
    if hasattr(value, "shown"):  # A text or a list, whose own values are shown.
        in_words: str = value.shown(translate, show)
    elif hasattr(value, "written"):
        in_words = show(value, value.written(translate))
    else:
        in_words = show(value, format(value, "" if spec in _OF_WORDS else spec))
    if spec == "clause":
        return in_words.rstrip(".。")
    return in_words[:1].upper() + in_words[1:] if spec == "capital" else in_words


def together(parts: Iterable[str]) -> str:
    """Join the parts of a text; between two Chinese characters, and beside a Chinese mark, there is no space."""
    text = ""
    for part in parts:
        if text[-1:] == " " and _are_close(text[-2:-1], part[:1]):
            text = text[:-1]
        elif part[:1] == " " and _are_close(text[-1:], part[1:2]):
            text += part[1:]
            continue
        text += part
    return text


def _are_close(left: str, right: str) -> bool:
    if not left or not right:
        return False
    is_mark = left in _MARKS or right in _MARKS
    return is_mark or (_HAN[0] <= left <= _HAN[1] and _HAN[0] <= right <= _HAN[1])


def number(value: Any) -> int:
    """Return the number that decides between two words."""
    if hasattr(value, "number"):
        return int(value.number())
    return int(value) if isinstance(value, (int, float)) else 1


def fact(value: Any) -> Any:
    """Return a value as JSON has it."""
    if hasattr(value, "fact"):
        return value.fact()
    is_plain = not isinstance(value, float) or math.isfinite(value)
    return value if is_plain else str(value)  # JSON has no word for what is not finite.
