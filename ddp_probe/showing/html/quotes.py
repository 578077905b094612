"""The lines of logs that the page's claims point at: each gets a place in the page, and is read once, masked."""

import json
from typing import Dict, Iterator, List, NamedTuple

from ddp_probe.reading.events import lines_at
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run
from ddp_probe.showing.found import log_line
from ddp_probe.showing.masker import Masker

MOST = 200  # Lines that one page quotes.
_LONGEST = 20_000  # Characters of one line.


class LineLink(NamedTuple):
    """A line of a log as the page names it, and its place in the page; without a place it is not quoted."""

    id: str
    label: str

    @property
    def number(self) -> str:
        """Return the number of the line."""
        return self.label.rpartition(":")[2]


class QuotedLine(NamedTuple):
    """A line of a log, one field of it on each row; no rows if the file is not here."""

    id: str
    label: str
    rows: List[str]


class Quotes:
    """Collects what is quoted while the page is made."""

    def __init__(self, run: Run, masker: Masker) -> None:
        self._run, self._masker = run, masker
        self._links: Dict[LogLine, LineLink] = {}

    def link(self, at: LogLine) -> LineLink:
        """Return where a line will be."""
        target = self._links.get(at)
        if target is None:
            label = log_line(at, self._run)
            if len(self._links) >= MOST:
                return LineLink("", label)
            target = self._links[at] = LineLink("line-%d" % (len(self._links) + 1), label)
        return target

    def read(self) -> List[QuotedLine]:
        """Return the lines, in the order in which they were asked for."""
        numbers: Dict[str, List[int]] = {}
        for at in self._links:
            numbers.setdefault(at.file, []).append(at.line)
        texts = {file: lines_at(file, set(those)) for file, those in numbers.items()}
        return [QuotedLine(*link, list(self._rows(texts[at.file].get(at.line, b"")))) for at, link in self._links.items()]

    def _rows(self, line: bytes) -> Iterator[str]:
        text = self._masker.event(line).decode("utf-8", "backslashreplace").rstrip("\r\n") if line else ""
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not event:
            yield from [_cut(text)] if text else []
            return
        fields = ["%s: %s" % (_json(name), _json(value)) for name, value in event.items()]
        for number, field in enumerate(fields):
            first, last = number == 0, number == len(fields) - 1
            yield _cut("%s%s%s" % ("{" if first else " ", field, "}" if last else ","))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else "%s ... (%d more characters)" % (text[:_LONGEST], len(text) - _LONGEST)
