"""Reads a page as a browser would, and collects what the tests ask about."""

import re
from html.parser import HTMLParser
from typing import Dict, List, Optional, Tuple

_VOID = frozenset("meta br".split())  # Those of HTML that the page uses; a shape of SVG closes itself.
_Attributes = List[Tuple[str, Optional[str]]]


class PageReader(HTMLParser):
    """A page: its elements in order, its text, and what is wrong with its tags."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: List[str] = []
        self.elements: List[Tuple[str, Dict[str, str]]] = []
        self.contents: Dict[str, List[str]] = {}  # Of each kind of element, the text of each one.
        self._open: List[Tuple[str, List[str]]] = []
        self.words: List[str] = []
        self.feed(text)
        self.close()
        self.faults += ["<%s> is not closed" % tag for tag, _ in self._open]

    @property
    def text(self) -> str:
        """Return what a person reads, with single spaces."""
        return re.sub(r"\s+", " ", "".join(self.words))

    def all(self, attribute: str) -> List[str]:
        """Return the values of an attribute."""
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]

    def those(self, *tags: str) -> List[Tuple[str, Dict[str, str]]]:
        """Return the elements of these kinds, in order."""
        return [each for each in self.elements if each[0] in tags]

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        """Open an element."""
        self._element(tag, attrs)
        if tag not in _VOID:
            self._open.append((tag, []))

    def handle_startendtag(self, tag: str, attrs: _Attributes) -> None:
        """Note an element that closes itself."""
        self._element(tag, attrs)

    def _element(self, tag: str, attrs: _Attributes) -> None:
        names = [name for name, _ in attrs]
        self.faults += ["<%s> has an attribute twice" % tag] if len(set(names)) < len(names) else []
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Close the element that was opened last."""
        name, text = self._open.pop() if self._open else ("nothing", [])
        if name != tag:
            self.faults.append("</%s> ends <%s>" % (tag, name))
        self.contents.setdefault(name, []).append("".join(text))

    def handle_data(self, data: str) -> None:
        """Add to the text of every open element."""
        for _, text in self._open:
            text.append(data)
        if self._open and self._open[-1][0] not in ("script", "style"):
            self.words.append(data)
