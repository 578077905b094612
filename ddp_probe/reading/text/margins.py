"""Removes what surrounds the lines of a quoted log: marks of quotes, lists and numbers, the frames of panels and tables."""

# ruff: noqa: RUF001  # What editors and programs print.

import re
from typing import Dict, List, NamedTuple, Optional, Pattern


class Margin(NamedTuple):
    """A kind of margin: its first letters, what a line with it looks like, and the share of the lines that must have it."""

    name: str
    pattern: Pattern[str]  # With a group `text`, except for a line that is only frame.
    share: float
    unless: Pattern[str]  # What no line may look like.


_NEVER = re.compile(r"(?!)")
QUOTED = re.compile(r"\s{0,3}(?!>>> )(?:>{1,4} ?)+(?P<text>.*)$")  # Even around a single line.
_NUMBER = re.compile(r"\s{0,8}(?P<number>\d{1,7})(?:\t|[.)] |\s?[|│] ?|[.)]$| (?=\d{1,5}: ))(?P<text>.*)$")
_MARGINS = (
    Margin("panel", re.compile(r"\s{0,8}(?:[│┃║] ?(?P<text>.*?)\s*[│┃║]?|[╭╰┌└┏┗╔╚├][─━═].*)$"), 0.7, re.compile(r"\s*[╭┌┏╔][─━═]+ Traceback|.*❱")),
    Margin("bar", re.compile(r"(?:\|[-:| ]*-[-:| ]*\||\| ?(?P<text>.*?)(?:\s*\|)?)$"), 0.8, re.compile(r"\s*\+[-=+]{3}|\|={3}|\|.*\d ?MiB")),
    Margin("stars", re.compile(r"(?:\*{10,}|\*(?: (?P<text>.*?))?\s*\*?)$"), 0.8, _NEVER),
    Margin("bullet", re.compile(r"[-•‣–](?: (?P<text>.*))?$"), 0.8, _NEVER),
)
_FIRSTS: Dict[str, List[Margin]] = {}
for _margin, _letters in zip(_MARGINS, ("│┃║╭╰┌└┏┗╔╚├", "|", "*", "-•‣–")):
    for _letter in _letters:
        _FIRSTS.setdefault(_letter, []).append(_margin)
_LEAST = 2
_RISING = 0.8  # Share of the line numbers.


def inner(texts: List[str]) -> Optional[List[str]]:
    """Return the lines of a block without the margin that most of them have; None if there is none."""
    full = [text for text in texts if text.strip()]
    if not full:
        return None
    for strip in (_quoted, _framed, _counted, _indented):
        inside = strip(texts, full)
        if inside is not None:
            return inside
    return None


def _quoted(texts: List[str], full: List[str]) -> Optional[List[str]]:
    if not any(">" in text[:4] for text in full):
        return None
    inside = [_without(QUOTED, text) if ">" in text[:4] else text for text in texts]
    return inside if inside != texts else None


def _framed(texts: List[str], full: List[str]) -> Optional[List[str]]:
    firsts = [text.lstrip()[:1] for text in full]
    for margin in _FIRSTS.get(max(set(firsts), key=firsts.count), ()):
        having = sum(1 for text in full if margin.pattern.match(text))
        if _LEAST <= having >= margin.share * len(full) and not any(margin.unless.match(text) for text in full):
            return [_without(margin.pattern, text) for text in texts]
    return None


def _without(pattern: Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return text if match is None else (match.group("text") or "").rstrip()


def _counted(texts: List[str], full: List[str]) -> Optional[List[str]]:
    """Remove line numbers: each is one more than the previous one."""
    if not full[0].lstrip()[:1].isdigit() and not full[-1].lstrip()[:1].isdigit():
        return None
    numbers = [int(match.group("number")) for match in map(_NUMBER.match, full) if match]
    rising = sum(1 for number, other in zip(numbers, numbers[1:]) if 0 < other - number <= 2)
    if len(numbers) < _LEAST or rising < _RISING * (len(full) - 1):
        return None
    return [_without(_NUMBER, text) for text in texts]


def _indented(texts: List[str], full: List[str]) -> Optional[List[str]]:
    """Take off the indentation that all lines have."""
    if not all(text[:1].isspace() for text in full):
        return None
    common = min(len(text) - len(text.lstrip()) for text in full)
    return [text[common:] for text in texts]
