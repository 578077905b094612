"""Short names of files: in full the first time, then only the last part; and the file for each name, for terminals with hyperlinks."""

import os
import re
from typing import Any, Dict, Iterable, Iterator, Match, Set

from ddp_probe.reading import bundled, job_source
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing import inventory, safe, source
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import Link, StyledLine
from ddp_probe.wording.values import Place, Quote


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
            yield line._replace(links=tuple(Link(match.start(), match.end(), self._files[match[1]]) for match in place.finditer(line.text) if names))


def linked(line: StyledLine, shown: str, path: str) -> StyledLine:
    """Return the line with a link on a name that it prints."""
    begin = line.text.find(shown)
    return line._replace(links=(*line.links, Link(begin, begin + len(shown), path))) if begin >= 0 and shown else line


# In what a program printed, and in the name of a file: the absolute path of a Python file, with or without a line. Other paths stay as they are.
_SOURCE = re.compile(r"(?<![\w/.:-])/[^\s'\"(),;:]+\.py\b")
# Words between two of these can only be a path if there is such a file.
_SPACED = re.compile(r"(?<![\w/.:-])/[^'\"(),;:\n]*? [^'\"(),;:\n]*?\.py\b")


class Paths:
    """The paths that one report has printed so far."""

    def __init__(self, run: Run, space: str = " ") -> None:
        self.places = Places(run)
        self._space = space  # Replaces a space in a path: layout.GLUE if the text will be wrapped.
        self._named: Dict[str, str] = {}  # File name to its full path.
        self._printed: Set[str] = set()

    def __call__(self, text: str, say: Language = ENGLISH) -> str:
        """Return a text in the reader's language, with its paths shortened."""
        return say.text(text, self.show)

    def show(self, value: Any, words: str) -> str:
        """Return the words of a value of a text with the paths in it shortened."""
        if isinstance(value, Place):
            return words if value.site is None else self._place(value.site, words)
        return self._quoted(words) if isinstance(value, (str, Quote)) else words

    def _place(self, site: Site, words: str) -> str:
        if not (site.file.startswith("/") and site.file.endswith(".py")):
            return words
        return "%s:%d" % (self.name(site.file).replace(" ", self._space), site.line)

    def _quoted(self, text: str) -> str:
        """Shorten the paths in what was printed, where only the disk tells whether a path has a space in it."""
        parts, begin, match = [], 0, _SPACED.search(text)
        while match is not None:
            if job_source.read(match.group()) is not None:
                parts += [_SOURCE.sub(self._short, text[begin : match.start()]), self._short(match)]
                begin = match.end()
            match = _SPACED.search(text, max(begin, match.start() + 1))
        return "".join([*parts, _SOURCE.sub(self._short, text[begin:])])

    def name(self, path: str) -> str:
        """Return the path the first time, then only the file name, unless another file of that name was printed."""
        name = os.path.basename(path)
        if path in self._printed and self._named[name] == path:
            return name
        self._printed.add(path)
        self._named.setdefault(name, path)
        self.places.add(name, path)
        return self.places.add(inventory.near(path), path)

    def log(self, path: str, run: Run) -> None:
        """Remember a log that is printed."""
        self.places.add(inventory.near(path, run), os.path.abspath(path))

    def _short(self, match: "Match[str]") -> str:
        return self.name(match.group()).replace(" ", self._space)
