"""Finds which process printed a line, from the prefix that launchers and collectors add."""

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Pattern, Tuple

from ddp_probe.reading.text.tracebacks import FINAL, OTHER, line


class Origin(NamedTuple):
    """The process that printed a line; an empty key if unknown."""

    key: str = ""
    rank: Optional[int] = None
    local_rank: Optional[int] = None  # If only that is known; ranks equal local ranks only on the first node.


NOBODY = Origin()


class Logical(NamedTuple):
    """A line as a process printed it."""

    number: int  # Number of the line of the file in which it begins.
    text: str
    origin: Origin = NOBODY
    lone: bool = True  # Whether it is all of that line, and nothing of another.


_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) "
_STAMP = re.compile(  # Nothing of it says who printed the line.
    _TIME + r"(?:std(?:out|err) [FP] |\d\d[OE](?:[+ ]|$))?"  # kubectl --timestamps, CRI, GitHub Actions, GitLab
    r"|[^\t]{1,80}\t[^\t]{1,80}\t" + _TIME + r"|[\w.-]{1,40} : (?=Traceback \()"  # gh run view --log, PowerShell
)
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
    re.compile(r"<\d{1,3}>1 \S+T\S+ (?P<key>\S+ \S+ \S+) \S+ (?:-|\[[^\]]*\]) ?"),  # syslog
    re.compile(r"(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<key>[\w.-]+ [\w./-]+(?:\[\d+\])?): ?"),  # journald, syslog of old
)
# Accepted only if most lines have one: a list in a log may be numbered too, and a message may begin with a file name.
_LIKELY: Tuple[Tuple[Pattern[str], str], ...] = (  # Each with what a line that has it must hold.
    (re.compile(r" {0,4}(?P<rank>\d{1,6}): "), ": "),  # srun --label
    (re.compile(r"(?P<key>(?=[\w.-]{0,120}\d)[a-z][\w.-]{0,120}(?<!\.py)(?<!\.so)(?<!\.so\.\d)): "), ": "),  # pdsh, by name
    (re.compile(r"\[(?P<rank>\d{1,6})\]:? "), "]"),  # mpiexec -prepend-rank, torchrun --log-line-prefix-template
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
        self._by_first["<"] = [pattern for pattern in self._known if "<\\d" in pattern.pattern]
        self._by_first["a"] = [pattern for pattern in self._known if pattern.pattern[:2] not in ("\\[", "\\(") and pattern.pattern[0] != "<"]

    def learn(self, lines: Iterable[str]) -> None:
        """Check whether most of these lines begin with one of the ambiguous prefixes."""
        texts = [_bare(text) for text in lines if text and not text.isspace()]
        for pattern, mark in _LIKELY:
            if pattern in self._known:
                continue
            having = sum([1 for text in texts if mark in text and pattern.match(text)])
            if having >= _LEAST and having >= _SHARE * len(texts):
                self._know((pattern,))

    def completed(self, lines: List[Logical]) -> List[Logical]:
        """Restore the missing prefix of the first line of an excerpt, if the second line continues its exception."""
        if len(lines) < 2 or self.split(lines[0].text)[0] is not NOBODY:
            return lines
        number, text, after = lines[0].number, lines[0].text, lines[1].text
        origin, rest = self.split(after)
        torn = line(number, text, False).kind == FINAL and origin is not NOBODY and line(number, rest, False).kind == OTHER
        return [lines[0]._replace(text=after[: len(after) - len(rest)] + text), *lines[1:]] if torn else lines

    def without(self, logical: Logical) -> Logical:
        """Return a line without its prefixes, which say who printed it."""
        origin, text = self.split(logical.text, logical.origin)
        return logical if text is logical.text else Logical(logical.number, text, origin, logical.lone)

    def logical(self, number: int, text: str, lone: bool) -> Logical:
        """Return a line of the file without its prefixes."""
        origin, text = self.split(text)
        return Logical(number, text, origin, lone)

    def split(self, text: str, origin: Origin = NOBODY) -> Tuple[Origin, str]:
        """Return the process that printed a line, and the line without prefixes."""
        text = _bare(text)
        for _ in range(3):  # Prefixes nest: scheduler, launcher, torch.
            match = self._match(text)
            if match is None:
                break
            origin, text = _joined(origin, match), _bare(text[match.end() :])
        return origin, text

    def has(self, text: str) -> bool:
        """Return whether a line has a prefix."""
        return self._match(text) is not None or _bare(text) != text

    def _match(self, text: str) -> "Optional[re.Match[str]]":
        first = text[:1]
        if first.isalnum() or first == " ":
            first = "a"
        elif first not in "[(<":
            first = ""
        for kind in self._by_first[first]:
            match = kind.match(text)
            if match:
                return match
        return None


def _bare(text: str) -> str:
    stamp = _STAMP.match(text) if text[:2] == "20" or "\t" in text or " : Trace" in text else None
    return text[stamp.end() :] if stamp else text


def _joined(outer: Origin, match: "re.Match[str]") -> Origin:
    groups = match.groupdict()
    rank = int(groups["rank"]) if groups.get("rank") else outer.rank
    local = int(groups["local"]) if groups.get("local") else outer.local_rank
    key = groups.get("key") or (groups.get("role") or "rank") + (groups.get("local") or groups.get("rank") or "")
    return Origin((outer.key + " " + key).strip(), rank, local)
