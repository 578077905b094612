"""What a raw line of a log says without the marks of terminals and pages, and which rank its prefix names."""

import html
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Pattern, Tuple

from ddp_probe.reading.text.tracebacks import FINAL, OTHER, line

_PLAIN = re.compile(rb"[\t\n\x20-\x25\x27-\x3b\x3d-\x7e]*\Z")  # No &, < or escape, as in most lines.
_ODD = re.compile(rb"[^\t\n\x20-\x7e]|<[/a-zA-Z]|&[#a-z]|\[\d{1,3}(?:;\d{1,3})*m")
_LEFT_OVER = re.compile(rb"\[\d{1,3}(?:;\d{1,3})*m")
_ESCAPE = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001b|\\033)(?:\[[0-?]{0,40}[ -/]{0,40}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[()][AB012])"
    r"|\x1b[@-Z\\-_]|\x9b[0-?]{0,40}[ -/]{0,40}[@-~]"
    r"|\[\d{1,3}(?:;\d{1,3})*m"  # A colour code that lost its escape character when the log was copied.
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]")
_TAGS = "span|div|p|br|pre|code|font|b|i|u|a|td|tr|th|table|tbody|html|body|head|li|ul|strong|em|details|summary"
_TAG = re.compile(r"</?(?:%s)(?:\s[^<>]*)?/?>" % _TAGS, re.I)
_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|nbsp|#39|#x27);")
_STATE = re.compile(r"[\W\d_]+")
_PARTS = 100
_SHOWN = 3  # For a line with many carriage returns: the last states of a progress bar, and text printed over it.


def clean(raw: bytes) -> List[str]:
    """Return the visible lines: one, unless carriage returns split it."""
    if _PLAIN.match(raw) and not _LEFT_OVER.search(raw):
        return [raw.decode("ascii").rstrip()]
    if not _ODD.search(raw):
        return [raw.decode("ascii").rstrip()]
    text = _ESCAPE.sub("", _decoded(raw))
    parts = [_without_marks(part) for part in text.rstrip("\r\n").split("\r")]
    return _seen([part for part in parts if part.strip()]) or [""]


def _decoded(raw: bytes) -> str:
    """Decode bytes: zero bytes are dropped, which turns UTF-16 into ASCII; anything else that is not UTF-8 is read as Latin-1."""
    raw = raw.replace(b"\0", b"")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raw = raw[2:]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _without_marks(text: str) -> str:
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    return _CONTROL.sub("", text).rstrip()


def _seen(parts: List[str]) -> List[str]:
    """Drop the earlier states of a progress bar; a part that does not resemble its neighbour is not a state."""
    if len(parts) <= _SHOWN:
        return parts
    kinds = [_STATE.sub("", part)[:12] for part in parts]
    return [part for part, kind, after in zip(parts, kinds, kinds[1:]) if kind != after][-_PARTS:] + parts[-1:]


# Finds which process printed a line, from the prefix that launchers add.


class Origin(NamedTuple):
    """The process that printed a line; an empty key if unknown."""

    key: str = ""
    rank: Optional[int] = None
    local_rank: Optional[int] = None  # If only that is known; ranks equal local ranks only on the first node.


NOBODY = Origin()

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?")  # kubectl --timestamps, CI
_CERTAIN: Tuple[Pattern[str], ...] = (
    re.compile(r"\[ ?[Rr](?:ank|ANK) ?[:=]? ?(?P<rank>\d{1,6}) ?\](?:: ?| |$)"),  # torch 2.x, Lightning, custom formats
    re.compile(r"\((?:[Rr]ank|RANK)[ :=]{1,2}(?P<rank>\d{1,6})\)(?:: ?| |$)"),
    re.compile(r"(?:[Rr]ank|RANK)[ =](?P<rank>\d{1,6})(?:: | \| ?|:$)"),
    re.compile(r"\[(?P<role>default|trainer|worker|local_rank|[a-z]+er)_?(?P<local>\d{1,4})\]: ?"),  # torchrun --tee
    re.compile(r"\[\d+,(?P<rank>\d{1,6})\]<std(?:out|err|diag)>: ?"),  # mpirun --tag-output
    re.compile(r"\((?P<key>(?:[\w.:<>-]+ )*pid=\d+(?:, ip=[\d.]+)?)\) ?"),  # Ray
    re.compile(r"\((?P<key>raylet(?:, ip=[\d.]+)?)\) ?"),
    re.compile(r"(?P<key>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}): "),  # deepspeed, pdsh
    re.compile(r"\[pod/(?P<key>[\w./-]+)\] "),  # kubectl --prefix
    re.compile(r"(?P<key>(?=[\w.]{1,60}[-_])[\w.-]{2,120}(?<=\d)) {1,60}\| ?"),  # docker compose
)
# Accepted only if most lines have one: a list in a log may be numbered too, and a message may begin with a file name.
_LIKELY: Tuple[Pattern[str], ...] = (
    re.compile(r" {0,4}(?P<rank>\d{1,6}): "),  # srun --label
    re.compile(r"(?P<key>(?=[\w.-]{0,120}\d)[a-z][\w.-]{0,120}(?<!\.py)(?<!\.so)(?<!\.so\.\d)): "),  # pdsh, by name
    re.compile(r"\[(?P<rank>\d{1,6})\]:? "),  # mpiexec -prepend-rank, torchrun --log-line-prefix-template
)
_SHARE, _LEAST = 0.5, 2


class Prefixes:
    """Removes prefixes from lines; learns block by block which of the ambiguous kinds this log has."""

    def __init__(self) -> None:
        self._known: List[Pattern[str]] = []
        self._by_first: Dict[str, List[Pattern[str]]] = {"": []}
        self._know(_CERTAIN)

    def _know(self, patterns: Iterable[Pattern[str]]) -> None:
        """Group the patterns by their possible first characters: most lines need no check at all."""
        self._known.extend(patterns)
        for first in "[(":
            self._by_first[first] = [pattern for pattern in self._known if pattern.pattern.startswith("\\" + first)]
        self._by_first["a"] = [pattern for pattern in self._known if pattern.pattern[:2] not in ("\\[", "\\(")]

    def learn(self, lines: Iterable[str]) -> None:
        """Check whether most of these lines begin with one of the ambiguous prefixes."""
        texts = [text for text in lines if text.strip()]
        for pattern in _LIKELY:
            if pattern in self._known:
                continue
            having = sum(1 for text in texts if pattern.match(_bare(text)))
            if having >= _LEAST and having >= _SHARE * len(texts):
                self._know((pattern,))

    def completed(self, parts: List[Tuple[int, str]]) -> List[Tuple[int, str]]:
        """Restore the missing prefix of the first line of an excerpt, if the second line continues its exception."""
        if len(parts) < 2 or self.split(parts[0][1])[0] is not NOBODY:
            return parts
        number, text = parts[0]
        after = parts[1][1]
        origin, rest = self.split(after)
        torn = line(number, text, False).kind == FINAL and origin is not NOBODY and line(number, rest, False).kind == OTHER
        return [(number, after[: len(after) - len(rest)] + text), *parts[1:]] if torn else parts

    def split(self, text: str) -> Tuple[Origin, str]:
        """Return the process that printed a line, and the line without prefixes."""
        text = _bare(text)
        origin = NOBODY
        for _ in range(3):  # Prefixes nest: scheduler, launcher, torch.
            found = self._match(text)
            if found is None:
                break
            origin, text = _joined(origin, found), text[found.end() :]
        return origin, text

    def _match(self, text: str) -> "Optional[re.Match[str]]":
        first = text[:1]
        for kind in self._by_first[first if first in "[(" else "a" if first.isalnum() or first == " " else ""]:
            found = kind.match(text)
            if found:
                return found
        return None


def _bare(text: str) -> str:
    stamp = _STAMP.match(text) if text[:2] == "20" else None
    return text[stamp.end() :] if stamp else text


def _joined(outer: Origin, found: "re.Match[str]") -> Origin:
    groups = found.groupdict()
    rank = int(groups["rank"]) if groups.get("rank") else outer.rank
    local = int(groups["local"]) if groups.get("local") else outer.local_rank
    own = groups.get("key") or (groups.get("role") or "rank") + (groups.get("local") or groups.get("rank") or "")
    return Origin((outer.key + " " + own).strip(), rank, local)
