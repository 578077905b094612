"""Classifies a line as part of a traceback: its header, a frame, its last line, or something else."""

import re
from typing import NamedTuple, Optional

from ddp_probe.shared.schema import Site

HEADER, FRAME, SOURCE, FINAL, PERHAPS_FINAL, LINK, BLANK, OTHER = range(8)

_HEADER = re.compile(r"Traceback \(most recent call last\)")
_FRAME = re.compile(r'[\s>|+]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_IPYTHON_FRAME = re.compile(r"(?P<file>(?:[/~.]|<ipython|[A-Za-z]:\\)\S*) in (?P<function>[\w<>.]+)\(.*\)$")
_IPYTHON_NEWER = re.compile(r"(?:File|Cell) (?P<file>\S+?|In ?\[\d+\]),? ?(?::|line )(?P<line>\d+)(?:, in (?P<function>[\w.<>]+)\(.*)?$")
_RICH_FRAME = re.compile(r"│\s?(?P<file>/\S+):(?P<line>\d+) in (?P<function>[\w<>.]+)\s*│?$")
_NUMBERED = re.compile(r"(?:│\s)?\s*(?:-+>|❱)\s*(?P<line>\d+) (?P<text>.*?)\s*│?$")  # A frame's own line in a source listing.
_LISTING = re.compile(r"(?:│.*│?|[╭╰]─.*|\s*\d+(?: .*)?)$")
_CLASS = r"(?:[A-Z]\w*)?(?:(?<=\w)Error|Exception|Interrupt|Timeout|TimeoutExpired|Refused|ExceptionGroup|SystemExit|StopIteration)"
_NAME = r"(?:(?:[A-Za-z_]\w*\.)*" + _CLASS
_SMALL = r"|socket\.(?:timeout|gaierror|error)|(?:struct|zlib|binascii|zmq|select)\.[eE]rror(?:\.\w+)?|queue\.(?:Empty|Full))"
_FINAL = re.compile(r"\s*(?P<type>%s%s)(?:\([\w.]+\))?(?::(?: (?P<message>.*))?)?$" % (_NAME, _SMALL))
_PERHAPS = re.compile(r"\s*(?P<type>(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|[A-Z]\w*)(?:\([\w.]+\))?(?::(?: (?P<message>.*))?)?$")
_NO_EXCEPTION = re.compile(r"\s*(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|NCCL|Epoch|Step|Iteration)\b")
_LINK = re.compile(
    r"[\s|+]*(?:During handling of the above exception, another exception occurred|The above exception was the direct cause of the following exc)"
)
_GROUP_MARGIN = re.compile(r"\s*(?:\+(?:-\+)?-+(?: \d+ -+)?$|[|+] (?=\s*\S)|\|\s*$)")


class TextLine(NamedTuple):
    """A line of a plain log, and its role in a traceback."""

    number: int
    text: str
    kind: int
    indent: int
    site: Optional[Site] = None
    type: str = ""
    message: str = ""  # The message in an exception's last line; in a listing, the text of the frame's line.


def line(number: int, text: str, in_group: bool) -> TextLine:
    """Classify a line; in an exception group, without the margin that shows the nesting."""
    if in_group:
        margin = _GROUP_MARGIN.match(text)
        text = text[margin.end() :] if margin else text
    text = text.rstrip()
    bare = text.lstrip()
    indent = len(text) - len(bare)
    if not bare:
        return TextLine(number, text, BLANK, 0)
    if "(most recent call last)" in text and _HEADER.search(text):
        return TextLine(number, text, HEADER, indent)
    site = _site(text) if ("File " in text or " in " in text or "Cell " in text) else None
    if site is not None:
        return TextLine(number, text, FRAME, indent, site)
    if " exception" in text and _LINK.match(text):
        return TextLine(number, text, LINK, indent)
    listed = _NUMBERED.match(text) if ("->" in text or "❱" in text) else None
    if listed:
        return TextLine(number, text, SOURCE, indent, Site("", int(listed.group("line"))), "", listed.group("text"))
    return _final(number, text, indent)


def _site(text: str) -> Optional[Site]:
    for pattern in (_FRAME, _IPYTHON_FRAME, _IPYTHON_NEWER, _RICH_FRAME):
        found = pattern.match(text)
        if found:
            groups = found.groupdict()
            number = int(groups.get("line") or 0) if len(groups.get("line") or "") < 10 else 0
            return Site(groups["file"][:1000], number, (groups.get("function") or "")[:200])
    return None


def _final(number: int, text: str, indent: int) -> TextLine:
    for kind, pattern in ((FINAL, _FINAL), (PERHAPS_FINAL, _PERHAPS)):
        found = pattern.match(text)
        if found and not (kind == PERHAPS_FINAL and _NO_EXCEPTION.match(text)):
            return TextLine(number, text, kind, indent, None, found.group("type"), found.group("message") or "")
    return TextLine(number, text, OTHER, indent)


def is_listing(text: str) -> bool:
    """Return whether a line surrounds a frame's own line, as in the listings of IPython and rich."""
    return _LISTING.match(text) is not None
