"""Finds the texts of rules in what a job printed, and the rank that a launcher's table names as the first to fail."""

import re
from functools import cached_property, lru_cache
from itertools import chain
from string import Formatter
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Pattern, Sequence, Set, Tuple

from ddp_probe.judging.facts import fact
from ddp_probe.judging.rule import (
    HIGH,
    LOW,
    Evidence,
    HostCard,
    Printed,
    Rule,
    constant,
    failed,
    first_of,
    line,
)
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text
from ddp_probe.wording.words import cut, quoted

_GAPS = {"[^\\n]*": False, "[^\\n]*?": False, ".*": True, ".*?": True}  # Whether it reaches over the end of a line.
_REACH = {")": 20, "\\s": 60, "\\d": 30}  # The most that a repetition which is not a gap may match.
_FAR = 300
_OVER = 400  # What a part may match beyond the end of the line in which it begins.
_LEAST = 3  # Letters of a word that is looked for before the pattern is.
_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_ATOM = Expression(
    r"(?P<atom>\\.|%s|\((?:\?(?:P<\w+>|P=\w+\)|[:=!]|<[=!]|[a-z]+:|\(\w+\)))?|.)(?P<times>(?:[*+?]|\{\d+(?:,\d*)?\})\??)?" % _CLASS, re.DOTALL
)
_ENDLESS = Expression(r"([*+]|\{\d+,\})(\??)")


_HEAD = Expression(r"\((?:\?(?:P<\w+>|:)|(?!\?))")  # Head of a group that matches letters: no look-ahead.
_GROUP = Expression(r"\(\?P<(\w+)>")


class PatternMatch:
    """The position of a match and what its groups hold; the part of a re.Match that rules use."""

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


class _Part:
    """The part of a pattern between two gaps; it is compiled for the first text that has one of its words."""

    def __init__(self, tokens: List[str], whole_text: bool = False) -> None:
        self.words = _words_of(tokens)  # It matches only text with one of them; without any it may match anything.
        self._text, self._whole_text = "".join(tokens), whole_text

    @cached_property
    def pattern(self) -> Pattern[str]:
        """Return what is searched for."""
        return re.compile(_ending(self._text, self._whole_text), re.DOTALL)


class Searchable:
    """A pattern, ready to be searched for; dots match line breaks."""

    def __init__(self, pattern: str) -> None:
        tokens = _tokens(pattern)
        whole = pattern.startswith("\\A") or "(?P=" in pattern
        self._names = _GROUP.findall(pattern)
        self._ways = [[[_Part(tokens, pattern.startswith("\\A"))]]] if whole else [_spans(way) for way in _ways(tokens)]

    def possible(self, text: str) -> bool:
        """Tell whether a text has the words without which the pattern matches no part of it."""
        return any(_has_words(spans, text) for spans in self._ways)

    def parts(self) -> List[str]:
        """Return the expressions that Python searches for, one after the other."""
        texts: List[str] = []
        for spans in self._ways:
            texts += [part.pattern.pattern for part in chain.from_iterable(spans)]
        return texts

    def has_word(self) -> bool:
        """Tell whether each match has one of some words: another pattern is tried on every text."""
        return all(any(part.words for part in chain.from_iterable(spans)) for spans in self._ways)

    def search(self, text: str) -> Optional[PatternMatch]:
        """Return the first place."""
        ways = [matches for matches in (_across_lines(spans, text) for spans in self._ways) if matches]
        return PatternMatch(min(ways, key=lambda matches: matches[0].start()), self._names) if ways else None


@lru_cache(maxsize=None)
def searchable(pattern: str) -> Searchable:
    """Return a pattern, ready to be searched for."""
    return Searchable(pattern)


def _has_words(spans: List[List[_Part]], text: str) -> bool:
    with_words = [part.words for part in chain.from_iterable(spans) if part.words]
    return all(any(word in text for word in words) for words in with_words)


def _across_lines(spans: List[List[_Part]], text: str) -> List["re.Match[str]"]:
    if not _has_words(spans, text):
        return []
    matches: List[Any] = []
    for span in spans:
        in_line = _in_a_line(span, text, matches[-1].end() if matches else 0)
        if not in_line:
            return []
        matches += in_line
    return matches


def _in_a_line(parts: List[_Part], text: str, begin: int) -> List["re.Match[str]"]:
    """Find parts that begin in one line, one after the other."""
    while begin <= len(text):
        match = parts[0].pattern.search(text, begin)
        if match is None:
            return []
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        parts_found = [match]
        for part in parts[1:]:
            after = part.pattern.search(text, parts_found[-1].end(), end + _OVER)
            if after is None or after.start() > end:
                break
            parts_found.append(after)
        if len(parts_found) == len(parts):
            return parts_found
        begin = end + 1
    return []


def _tokens(pattern: str) -> List[str]:
    """Return the letters, classes and groups of a pattern, each with its repetition; a group is one token."""
    tokens: List[str] = []
    depth = 0
    for match in _ATOM.finditer(pattern):
        atom = match.group("atom")
        if depth:
            tokens[-1] += match.group()
        else:
            tokens.append(match.group())
        depth += (atom[0] == "(" and (not atom.endswith(")") or atom.startswith("(?("))) - (atom == ")")
    return tokens


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
            spans[-1].append(_Part(held))
            held = []
            if _GAPS[token]:
                spans.append([])
        elif token not in _GAPS:
            held.append(token)
    if held:
        spans[-1].append(_Part(held))
    return [span for span in spans if span]


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
    of_ways = [_words(way) for way in _ways(tokens)]
    return tuple(chain.from_iterable(of_ways)) if all(of_ways) else ()


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


# Looks for the texts of a rule in failures: exceptions that a probe recorded, and passages of a plain log.


class Match(NamedTuple):
    """A failure that contains one of a rule's texts."""

    failure: Failed
    printed: Printed
    found: PatternMatch


@lru_cache(maxsize=4096)
def _search(pattern: str, text: str) -> Optional[PatternMatch]:
    """Thousands of ranks may say the same."""
    return searchable(pattern).search(text)


@fact
def _fatal(run: Run) -> Tuple[List[Tuple[str, Failed]], Set[str], str]:
    """Return the failures that were not survived, each with its text, and the different texts, also as one: many ranks may say the same."""
    failures = [(failure.text, failure) for failure in run.failures if failure.fatal]
    texts = {text for text, _ in failures}
    return failures, texts, "\n".join(texts)


def matches(rule: Rule, run: Run) -> List[Match]:
    """Return the failures that carry one of the rule's texts; of those that a probe recorded, those that were not survived."""
    failures, texts, joined = _fatal(run)
    if not texts:  # Taking a thousand patterns apart takes half as long as reading a healthy run.
        return []
    possible = [printed.pattern for printed in rule.printed if searchable(printed.pattern).possible(joined)]
    likely = {text for text in texts if any(_search(pattern, text) is not None for pattern in possible)}
    beside: Dict[Tuple[str, str], bool] = {}
    with_text = [failure for text, failure in failures if text in likely]
    return list(chain.from_iterable(_of(rule, failure, run, beside) for failure in with_text))


def _of(rule: Rule, failure: Failed, run: Run, beside: Dict[Tuple[str, str], bool]) -> Iterator[Match]:
    text, around = failure.text, ""
    for printed in rule.printed:
        pattern_match = _search(printed.pattern, text)
        if pattern_match is None:
            continue
        around = around or text + "\n" + failure.trail + _prefix(failure)
        if printed.unless and searchable(printed.unless).search(around):
            continue
        if printed.beside and not searchable(printed.beside).search(around) and not _in_log(printed.beside, failure, run, beside):
            continue
        if printed.nowhere and (searchable(printed.nowhere).search(around) or _in_log(printed.nowhere, failure, run, beside)):
            continue
        yield Match(failure, printed, pattern_match)
        return


def _prefix(failure: Failed) -> str:
    """Return the prefix that a line of a plain log lost with its rank: it tells that there are ranks."""
    return "" if failure.rank is None or failure.process is not None else "\n[rank%d]" % failure.rank


def _in_log(pattern: str, failure: Failed, run: Run, known: Dict[Tuple[str, str], bool]) -> bool:
    """Look for a pattern anywhere in the plain log of a failure, once for all failures in it: there may be thousands."""
    if failure.process is not None:
        return False
    key = (pattern, failure.at.file)
    if key not in known:
        text = next((log.text for log in run.texts if log.file == failure.at.file), "")
        known[key] = searchable(pattern).search(text) is not None
    return known[key]


def by_text(rule: Rule, run: Run, plain: bool = False) -> Iterator[Any]:
    """Yield one finding for all failures that carry a rule's text, in events or in plain logs: the check of a rule by words."""
    candidates = [match for match in matches(rule, run) if (match.failure.process is None) == plain]
    decisive = [match for match in candidates if not match.printed.next]
    if not decisive:
        for match in candidates[:1]:
            failures = [candidate.failure for candidate in candidates]
            yield rule.undecided(verdict_of(rule, match), failures, constant(match.printed.next))
        return
    first = decisive[0]
    ranks = set(chain.from_iterable(map(_ranks, decisive)))
    from_probe = first.failure.process is not None
    if plain and not ranks and first.printed.ranks:
        ranks = set(root_cause(log.text for log in run.texts if log.file == first.failure.at.file))
    yield rule.found(
        ranks=sorted(ranks),
        verdict=verdict_of(rule, first),
        evidence=first_of([_shown(match) for match in _first_of_each_rank(decisive)]),
        when=first.failure.when if from_probe else float(_line(first)),
        explains=[match.failure for match in decisive],
        confidence=HIGH if from_probe else LOW,
        restart=first.printed.restart,
        without=_named_places(decisive),
    )


def _named_places(several: List[Match]) -> List[HostCard]:
    """Return the hosts and cards that the texts name."""
    places: List[HostCard] = []
    for match in several:
        groups = match.found.groupdict()
        places.append(HostCard(groups.get("host") or "", groups.get("card") or ""))
    return sorted({place for place in places if any(place)})


def _line(match: Match) -> int:
    """Return the number of the line that carries the text: a passage of a plain log may begin some lines before it."""
    failure = match.failure
    numbers: List[int] = []
    if not failure.type:
        for (_, number), text in failure.source.items():
            numbers += [number] * (text.count("\n") + 1)
    nth = failure.message[: match.found.start()].count("\n")
    return numbers[nth] if nth < len(numbers) else failure.at.line


def _shown(match: Match) -> Evidence:
    shown, at = failed(match.failure), _line(match)
    if match.failure.process is not None or at == match.failure.at.line:
        return shown
    return line(LogLine(match.failure.at.file, at), cut(match.failure.source[(match.failure.at.file, at)], 300))


def _first_of_each_rank(several: List[Match]) -> List[Match]:
    return list({match.failure.rank: match for match in reversed(several)}.values())[::-1]


def _ranks(match: Match) -> List[int]:
    named = [int(value) for name, value in match.found.groupdict().items() if name.startswith("rank") and value is not None and value.isdecimal()]
    if named or not match.printed.ranks:
        return named
    process = match.failure.process
    nobody = process is not None and process.alone  # rank 0 of 1: there is no other rank to blame
    return [] if nobody or match.failure.rank is None else [match.failure.rank]


def verdict_of(rule: Rule, match: Match) -> Text:
    """Return what a text says, with what its groups hold; a name that it lacks is a question mark. Without words, the rule's title."""
    if not match.printed.says:
        return constant(rule.title)
    groups = match.found.groupdict(default="?")
    names = [name for _, name, _, _ in Formatter().parse(match.printed.says) if name]
    return Text(match.printed.says, {name: quoted(groups.get(name, "?")) for name in names})


# The rank that a plain log names as the first to fail, if the lines of the failure do not show which rank printed them.

_TABLE = Expression(r"Root Cause \(first observed failure\):\s{1,40}\[\d{1,6}\]:\s{1,40}(?:[^\n]{0,200}\n\s{0,40}){1,3}?rank\s{0,20}: (\d{1,6}) ")
_SPAWNED = Expression(r"-- Process (\d{1,6}) terminated with the following error:")
_LOCAL = Expression(r"failed \(exitcode: -?\d{1,3}\) local_rank: (\d{1,6}) \(pid")
_NODES = Expression(r"\b(?:nnodes|node_rank|group_rank|machine_rank)[= ](?![01]\b)\d|\bgroup_world_size=(?!1\b)\d|--nnodes[= ]\$")


def root_cause(texts: Iterable[str]) -> List[int]:
    """Return the rank of torchrun's table or of mp.spawn's message; a local rank counts too, if nothing shows other hosts."""
    known = list(texts)
    for pattern in (_TABLE, _SPAWNED):
        ranks = [match.group(1) for match in map(pattern.search, known) if match]
        if ranks:
            return [int(ranks[0])]
    local = [match.group(1) for match in map(_LOCAL.search, known) if match]
    return [int(local[0])] if local and not any(_NODES.search(text) for text in known) else []
