"""Remembers which file stands behind each name that a page prints, so that a terminal with hyperlinks can open it."""

import re
from typing import Dict, Iterable, Iterator

from ddp_probe.reading import bundled
from ddp_probe.reading.model import Run
from ddp_probe.showing import safe, source
from ddp_probe.showing.layout import Link, StyledLine


class Places:
    """The files that the pages about a run name."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._files: Dict[str, str] = {}

    def add(self, shown: str, path: str) -> str:
        """Remember the file behind a name, and return the name. A name of two files, and the unpacked files of a bundle, have no link."""
        path = source.absolute(path, self._run)
        if bundled.current() is None and self._files.setdefault(safe.line(shown), path) != path:
            self._files[safe.line(shown)] = ""
        return shown

    def linked(self, page: Iterable[StyledLine]) -> Iterator[StyledLine]:
        """Yield the lines with a link for each place, which is a name with the number of a line."""
        page = list(page)  # The names are known only now.
        names = "|".join(re.escape(name) for name in sorted(self._files, key=len, reverse=True) if self._files[name])
        place = re.compile(r"(?<![\w/.-])(%s):\d+" % names)
        for line in page:
            yield line._replace(links=tuple(Link(found.start(), found.end(), self._files[found[1]]) for found in place.finditer(line.text) if names))


def linked(line: StyledLine, shown: str, path: str) -> StyledLine:
    """Return the line with a link on a name that it prints."""
    begin = line.text.find(shown)
    return line._replace(links=(*line.links, Link(begin, begin + len(shown), path))) if begin >= 0 and shown else line
