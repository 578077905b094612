"""Finds which process printed a line, from the prefix that launchers add."""

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Pattern, Tuple

from ddp_probe.reading.text._lines import FINAL, OTHER, line


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
