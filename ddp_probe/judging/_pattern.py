r"""Searches a rule's pattern in time that grows with the length of the text and not faster, for every text.

Python's re tries `A[^\n]*B` from each A to the end of its line: a text of nothing but A takes time by the square of its length, and with three parts
by the cube. Here a pattern is taken apart at its gaps, outside of parentheses: after the first A the first B is looked for, and if there is none in
reach, no later A is tried in its place. Inside of parentheses, and in a pattern that refers back to a group, each repetition has an end.
"""

import re
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional, Pattern, Sequence, Tuple

_GAPS = {"[^\\n]*": False, "[^\\n]*?": False, ".*": True, ".*?": True}  # Whether it reaches over the end of a line.
_REACH = {")": 20, "\\s": 60, "\\d": 30}  # Of a repetition that is not a gap.
_FAR = 300
_OVER = 400  # What a part may match beyond the end of the line in which it begins.
_LEAST = 3  # Letters of a word that is looked for before the pattern is.
_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_ATOM = re.compile(
    r"(?P<atom>\\.|%s|\((?:\?(?:P<\w+>|P=\w+\)|[:=!]|<[=!]|[a-z]+:|\(\w+\)))?|.)(?P<times>(?:[*+?]|\{\d+(?:,\d*)?\})\??)?" % _CLASS, re.DOTALL
)
_ENDLESS = re.compile(r"([*+]|\{\d+,\})(\??)")


_HEAD = re.compile(r"\((?:\?(?:P<\w+>|:)|(?!\?))")  # Of a group that takes letters: no look ahead.
_GROUP = re.compile(r"\(\?P<(\w+)>")


class PatternMatch:
    """The position at which a pattern was found, and what its groups hold; the part of a re.Match that rules ask for."""

    def __init__(self, matches: Sequence["re.Match[str]"], names: Sequence[str]) -> None:
        self._start = matches[0].start()
        self._groups: Dict[str, Optional[str]] = dict.fromkeys(names)
        for match in matches:
            self._groups.update(match.groupdict())

    def start(self) -> int:
        """Return where it begins."""
        return self._start

    def group(self, name: str) -> Any:
        """Return what a group holds."""
        return self._groups[name]

    def groupdict(self, default: Optional[str] = None) -> Dict[str, Any]:
        """Return what each group holds."""
        return {name: default if value is None else value for name, value in self._groups.items()}


class _Part(NamedTuple):
    """What stands between two gaps."""

    pattern: Pattern[str]
    words: Tuple[str, ...]  # It matches nothing that has none of them; without any it may match anything.


class Searchable:
    """A pattern, ready to be searched for; dots match line breaks."""

    def __init__(self, pattern: str) -> None:
        tokens = _tokens(pattern)
        whole = pattern.startswith("\\A") or "(?P=" in pattern
        self._names = _GROUP.findall(pattern)
        self._ways = [[[_part(tokens, pattern.startswith("\\A"))]]] if whole else [_spans(way) for way in _ways(tokens)]

    def search(self, text: str) -> Optional[PatternMatch]:
        """Return the first place."""
        found = [matches for matches in (_across_lines(spans, text) for spans in self._ways) if matches]
        return PatternMatch(min(found, key=lambda matches: matches[0].start()), self._names) if found else None


@lru_cache(maxsize=None)
def searchable(pattern: str) -> Searchable:
    """Return a pattern, ready to be searched for."""
    return Searchable(pattern)


# --- searching


def _across_lines(spans: List[List[_Part]], text: str) -> List["re.Match[str]"]:
    if any(part.words and not any(word in text for word in part.words) for span in spans for part in span):
        return []
    matches: List[Any] = []
    for span in spans:
        found = _in_a_line(span, text, matches[-1].end() if matches else 0)
        if not found:
            return []
        matches += found
    return matches


def _in_a_line(parts: List[_Part], text: str, begin: int) -> List["re.Match[str]"]:
    """Find parts that begin in one line, one after the other."""
    while begin <= len(text):
        match = parts[0].pattern.search(text, begin)
        if match is None:
            return []
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        found = [match]
        for part in parts[1:]:
            after = part.pattern.search(text, found[-1].end(), end + _OVER)
            if after is None or after.start() > end:
                break
            found.append(after)
        if len(found) == len(parts):
            return found
        begin = end + 1
    return []


# --- taking apart


def _tokens(pattern: str) -> List[str]:
    """Return the letters, classes and groups of a pattern, each with its repetition; a group is one token."""
    found: List[str] = []
    depth = 0
    for match in _ATOM.finditer(pattern):
        atom = match.group("atom")
        if depth:
            found[-1] += match.group()
        else:
            found.append(match.group())
        depth += (atom[0] == "(" and (not atom.endswith(")") or atom.startswith("(?("))) - (atom == ")")
    return found


def _ways(tokens: List[str]) -> List[List[str]]:
    """Split at the bars between alternatives."""
    ways: List[List[str]] = [[]]
    for token in tokens:
        if token == "|":  # noqa: S105  # Of a pattern.
            ways.append([])
        else:
            ways[-1].append(token)
    return ways


def _spans(tokens: List[str]) -> List[List[_Part]]:
    """Split at the gaps: those over lines, and between them those in a line."""
    spans: List[List[_Part]] = [[]]
    held: List[str] = []
    for token in tokens:
        if token in _GAPS and held:
            spans[-1].append(_part(held))
            held = []
            if _GAPS[token]:
                spans.append([])
        elif token not in _GAPS:
            held.append(token)
    if held:
        spans[-1].append(_part(held))
    return [span for span in spans if span]


def _part(tokens: List[str], whole_text: bool = False) -> _Part:
    return _Part(re.compile(_ending("".join(tokens), whole_text), re.DOTALL), _words_of(tokens))


def _ending(pattern: str, whole_text: bool) -> str:
    """Give each repetition an end; except a dot's, if the pattern is tried at the beginning of the text only."""

    def ended(match: "re.Match[str]") -> str:
        atom, times = match.group("atom"), match.group("times") or ""
        endless = _ENDLESS.fullmatch(times)
        if endless is None or (atom == "." and whole_text):
            return match.group()
        least = {"*": "0", "+": "1"}.get(endless.group(1)) or endless.group(1)[1:-2]
        return "%s{%s,%d}%s" % (atom, least, max(_REACH.get(atom, _FAR), int(least)), endless.group(2))

    return _ATOM.sub(ended, pattern)


def _words_of(tokens: List[str]) -> Tuple[str, ...]:
    """Return words of which each match has one; nothing if one of the alternatives needs none."""
    each = [_words(way) for way in _ways(tokens)]
    return tuple(word for words in each for word in words) if all(each) else ()


def _words(tokens: List[str]) -> Tuple[str, ...]:
    """Take the longest run of letters, or of each alternative of a group its longest."""
    runs: List[Tuple[str, ...]] = []
    run = ""
    for token in [*tokens, ""]:
        plain = len(token) == 1 and token not in ".^$"  # noqa: S105  # Of a pattern.
        letter = token[-1] if plain or (len(token) == 2 and token[0] == "\\" and not token[1].isalnum()) else ""
        run += letter
        if not letter:
            runs.append((run,))
            run = ""
            runs.append(_of_group(token) or ("",))
    best = max(runs, key=lambda words: min(map(len, words)), default=("",))
    return best if min(map(len, best)) >= _LEAST else ()


def _of_group(token: str) -> Tuple[str, ...]:
    head = _HEAD.match(token)
    return _words_of(_tokens(token[head.end() : -1])) if head is not None and token.endswith(")") else ()
