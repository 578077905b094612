"""Joins what a terminal, a chat window or a progress bar broke, if that completes a frame or the width alone explains the break."""

import re
from typing import Callable, List, Optional

from ddp_probe.reading.text.origins import Logical
from ddp_probe.reading.text.tracebacks import FINAL, FRAME, HEADER, LINK, RECORD, line

_USUAL = (80, 100, 120, 128, 132, 160)  # Columns of terminals, and of the pages of trackers.
_NARROWEST, _WIDEST = 50, 200
_NEAR = 0.8  # Share of the widest line that one more word would have exceeded, in letters of different widths.
_DIGITS = str.maketrans("0123456789", "##########")
_NUMBER = re.compile(r"\d+")
_MARGIN = ">|*-•│┃║╭╰┌└┏┗╔╚├"
_SAME = 0.7
_PIECES = 60  # Pieces of one line.

_OPEN_FRAME = re.compile(r'[\s>|+]*File "[^"]*$|[\s>|+]*File "[^"]+",?(?: line)?$|[\s>|+]*File "[^"]+", line \d+,(?: in)?$|[\s>|+]*File$')
_NUMBERED_FRAME = re.compile(r'[\s>|+]*File "[^"]+", line \d+$')
_IN = re.compile(r"\d*, in \S+$|in [\w<>.]+$")
_OPEN_HEADER = re.compile(r"[^(]{0,40}Traceback(?: \((?:most(?: \w{0,6}){0,3})?)?\s?$")
_STARTS = re.compile(r"\s*File \"|\s*Traceback \(|frame #|\s{2,}\S")
_RULER = re.compile(r"\s*([-=*_#~])\1{7,}\s*$")
_ENDED = re.compile(r"[.!?:;…]['\")\]]?$")
_FLOWS = re.compile(r"[a-z0-9(,'\"/=<\[{._*&-]")
_BAR = re.compile(r"(?P<before>.*?)(?P<bar>\s?\d{1,3}%\|[^|]{0,300}\| ?[\d.,kMGT?]+/[\d.,kMGT?]+ \[[^\]]{1,80}\])(?P<after>.*)$")


def joined(pieces: List[Logical], starts: Callable[[str], bool], least: int) -> List[Logical]:
    """Return the pieces with the broken lines whole; `starts` tells whether a line has a prefix.

    At spaces lines are broken if at least this many sentences go on in the next line; 0 if never.
    """
    if any("%|" in piece.text for piece in pieces):
        pieces = _without_bars(pieces, starts)
    widest = max((len(piece.text) for piece in pieces), default=0)
    if len(pieces) < 2 or _has_margin(pieces):
        return pieces
    broken = _NARROWEST <= widest <= _WIDEST
    exact = _exact(pieces, widest, starts) if broken else 0
    soft = widest if least and broken and not exact and _flows(pieces, widest, starts) >= least else 0
    return _join(pieces, lambda whole, last, after: _between(whole, last, after, exact, soft, starts))


def _has_margin(pieces: List[Logical]) -> bool:
    firsts = [piece.text.lstrip()[:1] for piece in pieces if piece.text.strip()]
    return sum(1 for first in firsts if first in _MARGIN) > _SAME * len(firsts)


def _join(pieces: List[Logical], between: Callable[[str, str, str], Optional[str]]) -> List[Logical]:
    logicals: List[Logical] = []
    last, count = "", 0
    for piece in pieces:
        alike = logicals and count < _PIECES and logicals[-1].origin == piece.origin
        gap = between(logicals[-1].text, last, piece.text) if alike else None
        if gap is None:
            logicals.append(piece)
            count = 0
        else:
            logicals[-1] = logicals[-1]._replace(text=logicals[-1].text + gap + (piece.text.lstrip() if gap else piece.text), lone=False)
            count += 1
        last = piece.text
    return logicals


def _between(whole: str, last: str, after: str, exact: int, soft: int, starts: Callable[[str], bool]) -> Optional[str]:
    """Return what stood between two pieces of one line; None if they are two lines."""
    if not after.strip() or not last.strip() or _RULER.match(last):
        return None
    if "File" in whole and _OPEN_FRAME.match(whole) and not starts(after) and not _STARTS.match(after):
        return "" if whole.count('"') == 1 and len(last) > 1 else " "
    if _NUMBERED_FRAME.match(whole) and _IN.match(after):
        return "" if after[:1] in ",0123456789" else " "
    if "Traceback" in whole and _OPEN_HEADER.match(whole) and ("last)" in after[:30]):
        return "" if exact and len(last) == exact else " "
    if exact:
        return _gap(last, after, exact) if not _is_new(after, starts) else None
    if not soft:
        return None
    width = soft if _ENDED.search(last) is None else soft / _NEAR
    return " " if _is_near(last, after, width) and not _begins(after, starts) else None


def _gap(last: str, after: str, width: int) -> Optional[str]:
    if len(last) == width:
        return ""
    return " " if len(last) == width - 1 and not after[:1].isspace() else None


def _exact(pieces: List[Logical], widest: int, starts: Callable[[str], bool]) -> int:
    """Return the column at which lines are broken: different lines end there, or one does and the column is a usual one; no line is longer."""
    full = [index for index, piece in enumerate(pieces[:-1]) if len(piece.text) == widest]
    kinds = {pieces[index].text.translate(_DIGITS) for index in full}
    if len(kinds) < (1 if widest in _USUAL else 3):
        return 0
    on = sum(1 for index in full if pieces[index + 1].text.strip() and not _is_new(pieces[index + 1].text, starts))
    return widest if on and on >= _SAME * len(full) else 0


def _is_new(text: str, starts: Callable[[str], bool]) -> bool:
    return starts(text) or any(pattern.match(text) is not None for pattern in (RECORD, _STARTS, _RULER))


def _flows(pieces: List[Logical], widest: int, starts: Callable[[str], bool]) -> int:
    """Count the sentences that continue in the next line, as one word more would not have fit."""
    return sum(1 for logical, other in zip(pieces, pieces[1:]) if _goes_on(logical.text, other.text, widest, starts))


def _goes_on(first: str, other: str, widest: int, starts: Callable[[str], bool]) -> bool:
    if _first(first) == _first(other) or _RULER.match(first):  # A prefix, or the numbers of lines.
        return False
    return _is_near(first, other, widest) and _FLOWS.match(other) is not None and not _ENDED.search(first) and not _begins(other, starts)


def _first(text: str) -> str:
    return _NUMBER.sub("#", text.split(None, 1)[0]) if text.strip() else ""


def _is_near(first: str, other: str, widest: float) -> bool:
    return bool(other.strip()) and len(first) + 1 + len(other.split(None, 1)[0]) >= _NEAR * widest


def _begins(text: str, starts: Callable[[str], bool]) -> bool:
    return _is_new(text, starts) or line(0, text, False).kind in (HEADER, FRAME, LINK, FINAL)


def _without_bars(pieces: List[Logical], starts: Callable[[str], bool]) -> List[Logical]:
    """Set a bar that was printed into a line on a separate line, and join the line."""
    logicals: List[Logical] = []
    torn = False
    for piece in pieces:
        bar = _BAR.match(piece.text) if "%|" in piece.text else None
        if torn and bar is None and piece.text.strip() and not _is_new(piece.text, starts):
            logicals[-2] = logicals[-2]._replace(text=logicals[-2].text + piece.text, lone=False)
        elif bar is None:
            logicals.append(piece)
        torn = bar is not None and _is_torn(bar)
        if bar is not None:
            logicals += _around(piece, bar, torn)
    return logicals


def _is_torn(bar: "re.Match[str]") -> bool:
    before = bar.group("before")
    return bool(before.strip()) and not before.rstrip().endswith((":", ">")) and not bar.group("after").strip()


def _around(piece: Logical, bar: "re.Match[str]", torn: bool) -> List[Logical]:
    before, after = bar.group("before"), bar.group("after")
    if not torn and (not after.strip() or after[:1] in " ,"):
        return [piece]
    parts = (before, bar.group("bar"), after) if torn else ("", before + bar.group("bar"), after)
    return [piece._replace(text=part, lone=False) for part in parts if part.strip()]
