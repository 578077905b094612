"""Turns a text as it was pasted into the lines that were printed: the only stage in front of everything that reads a plain log."""

import re
from typing import List, Tuple

from ddp_probe.reading.text import margins
from ddp_probe.reading.text.marks import clean, visible
from ddp_probe.reading.text.origins import NOBODY, Logical, Prefixes
from ddp_probe.reading.text.wraps import joined

_LONGEST = 8000  # Characters; the rest of a line is cut.
_LAYERS = 4  # Maximum margins around each other: a quote of a table of a numbered log.
_SENTENCES = 2  # That are broken, to show that the text is; a panel breaks what does not fit.
_BOX = "│┃║╭┌┏╔"
_RECORD = 12  # Lines of an error record of PowerShell, which may be wrapped.
_AT_LINE = re.compile(r"\s*(?:At|所在位置) (?:line|行|[^\n:]{1,200}(?:\.ps1)?):\s?\d+ (?:char|字符):\s?\d+")
_PROGRAM = re.compile(r"[\w.-]{1,40} : (?=.)")
_ROUNDS = 3  # Margins may be inside prefixes, and prefixes inside margins.


class PastedLines:
    """Reads a log block by block."""

    def __init__(self, whole: bool) -> None:
        self._least = _SENTENCES if whole else 0  # A long log is a file: no chat window broke its lines at spaces.
        self._prefixes = Prefixes()
        self._framed = True  # Whether the first block had margins or broken lines: if not, nobody looks for them in the others.

    def of(self, before: int, lines: List[bytes]) -> List[Logical]:
        """Return the lines of a block, which follows this many others."""
        visible_lines: List[Tuple[int, str, bool]] = []
        for number, parts in enumerate(map(clean, lines), before + 1):
            visible_lines += [(number, part[:_LONGEST], len(parts) == 1) for part in parts]
        if before and not self._framed:
            self._prefixes.learn([text for _, text, _ in visible_lines])
            return [self._prefixes.logical(*line) for line in visible_lines]
        logicals = [Logical(number, text, NOBODY, lone) for number, text, lone in visible_lines]
        if self._framed:
            inner = self._inner(logicals)
            self._framed = bool(before) or inner != logicals
            logicals = inner
        self._prefixes.learn(logical.text for logical in logicals)
        if not before:
            logicals = self._prefixes.completed(logicals)
        split = [self._prefixes.without(logical) for logical in logicals]
        return self._beneath(split, _ROUNDS - 1) if (self._framed or not before) and split != logicals else split

    def _beneath(self, lines: List[Logical], rounds: int) -> List[Logical]:
        """Take off the margins and prefixes that are inside of prefixes."""
        inner = self._inner(lines)
        self._prefixes.learn(logical.text for logical in inner)
        split = [self._prefixes.without(logical) for logical in inner]
        return self._beneath(split, rounds - 1) if rounds > 1 and split != inner else split

    def _inner(self, lines: List[Logical]) -> List[Logical]:
        """Take the margins off, and join what was broken within them."""
        self._prefixes.learn(logical.text for logical in lines)
        lines = joined(_close(_unrecorded(lines)), self._prefixes.has, self._least)
        for _ in range(_LAYERS):
            texts = margins.inner([logical.text for logical in lines])
            if texts is None:
                break
            boxed = any(logical.text.lstrip()[:1] in _BOX for logical in lines if logical.text.strip())
            bare: List[Logical] = []
            for logical, text in zip(lines, texts):
                parts = visible(text) if text[:2] in ('{"', "``", "~~") else [text]
                bare += [logical._replace(text=part) for part in parts]
            lines = joined(_close(bare), self._prefixes.has, self._least and (1 if boxed else _SENTENCES))
        return lines


def _close(lines: List[Logical]) -> List[Logical]:
    """Drop the empty lines of a text in which every second line is empty."""
    if len(lines) < 4:
        return lines
    for begin in (0, 1):
        if not any(logical.text.strip() for logical in lines[begin::2]) and any(logical.text.strip() for logical in lines[1 - begin :: 2]):
            return lines[1 - begin :: 2]
    return lines


def _unrecorded(lines: List[Logical]) -> List[Logical]:
    """Take out what PowerShell's error records say of themselves, after the first line that a program wrote to stderr."""
    for end in [index for index, logical in enumerate(lines) if "+ FullyQualifiedErrorId" in logical.text][::-1]:
        begin = next((index for index in range(end, max(end - _RECORD, 0), -1) if _AT_LINE.match(lines[index].text)), 0)
        if begin:
            after = end + 1 + (not "".join(logical.text for logical in lines[end + 1 : end + 2]).strip())
            first = lines[begin - 1]
            of_program = first._replace(text=_PROGRAM.sub("", first.text, 1))
            lines = [*lines[: begin - 1], of_program, *lines[after:]]
    return lines
