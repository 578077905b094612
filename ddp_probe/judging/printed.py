"""Looks for the texts of a rule in failures: exceptions that a probe recorded, and passages of a plain log."""

from functools import lru_cache
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple
from weakref import WeakKeyDictionary

from ddp_probe.judging._pattern import PatternMatch, searchable
from ddp_probe.judging._root_cause import root_cause
from ddp_probe.judging.rule import HIGH, LOW, Evidence, Finding, Printed, Rule, failed, first_of, line
from ddp_probe.judging.words import cut
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed, Run


class Match(NamedTuple):
    """A failure in which one of a rule's texts was found."""

    failure: Failed
    printed: Printed
    found: PatternMatch


@lru_cache(maxsize=4096)
def _search(pattern: str, text: str) -> Optional[PatternMatch]:
    """Thousands of ranks may say the same."""
    return searchable(pattern).search(text)


_TEXTS: "WeakKeyDictionary[Run, Tuple[List[Failed], List[Tuple[str, Failed]], Set[str]]]" = WeakKeyDictionary()


def _fatal(run: Run) -> Tuple[List[Tuple[str, Failed]], Set[str]]:
    """Return the failures that were not survived, each with its text, and the different texts: a hundred thousand ranks may say the same."""
    known = _TEXTS.get(run)
    if known is None or known[0] is not run.failures:
        found = [(failure.text, failure) for failure in run.failures if failure.fatal]
        known = _TEXTS[run] = (run.failures, found, {text for text, _ in found})
    return known[1], known[2]


def matches(rule: Rule, run: Run) -> List[Match]:
    """Return the failures that carry one of the rule's texts; of those that a probe recorded, the ones that were not survived."""
    found, texts = _fatal(run)
    likely = {text for text in texts if any(_search(printed.pattern, text) is not None for printed in rule.printed)}
    beside: Dict[Tuple[str, str], bool] = {}
    return [match for text, failure in found if text in likely for match in _of(rule, failure, run, beside)] if likely else []


def _of(rule: Rule, failure: Failed, run: Run, beside: Dict[Tuple[str, str], bool]) -> Iterator[Match]:
    text, around = failure.text, ""
    for printed in rule.printed:
        found = _search(printed.pattern, text)
        if found is None:
            continue
        around = around or text + "\n" + failure.trail
        if printed.unless and searchable(printed.unless).search(around):
            continue
        if printed.beside and not searchable(printed.beside).search(around) and not _in_log(printed.beside, failure, run, beside):
            continue
        if printed.nowhere and (searchable(printed.nowhere).search(around) or _in_log(printed.nowhere, failure, run, beside)):
            continue
        yield Match(failure, printed, found)
        return


def _in_log(pattern: str, failure: Failed, run: Run, known: Dict[Tuple[str, str], bool]) -> bool:
    """Look for a pattern anywhere in the plain log of a failure, once for all failures in it: there may be thousands."""
    if failure.process is not None:
        return False
    key = (pattern, failure.at.file)
    if key not in known:
        text = next((log.text for log in run.texts if log.file == failure.at.file), "")
        known[key] = searchable(pattern).search(text) is not None
    return known[key]


def by_text(rule: Rule, run: Run, plain: bool = False) -> Iterator[Finding]:
    """Yield one finding for all failures that carry a rule's text, in events or in plain logs: the check of a rule by words."""
    found = [match for match in matches(rule, run) if (match.failure.process is None) == plain]
    if not found:
        return
    first = found[0]
    ranks = {rank for match in found for rank in _ranks(match)}
    from_probe = first.failure.process is not None
    if plain and not ranks and first.printed.ranks:
        ranks = set(root_cause(log.text for log in run.texts if log.file == first.failure.at.file))
    yield rule.found(
        ranks=sorted(ranks),
        verdict=_verdict(rule, first),
        evidence=first_of([_shown(match) for match in _one_a_rank(found)]),
        when=first.failure.when if from_probe else float(_line(first)),
        explains=[match.failure for match in found],
        confidence=HIGH if from_probe else LOW,
    )


def _line(match: Match) -> int:
    """Return the number of the line that carries the text: a passage of a plain log may begin some lines before it."""
    failure = match.failure
    numbers = [number for _, number in failure.source] if not failure.type else []
    nth = failure.message[: match.found.start()].count("\n")
    return numbers[nth] if nth < len(numbers) else failure.at.line


def _shown(match: Match) -> Evidence:
    shown, at = failed(match.failure), _line(match)
    if match.failure.process is not None or at == match.failure.at.line:
        return shown
    return line(LogLine(match.failure.at.file, at), cut(match.failure.source[(match.failure.at.file, at)], 300))


def _one_a_rank(found: List[Match]) -> List[Match]:
    return list({match.failure.rank: match for match in reversed(found)}.values())[::-1]


def _ranks(match: Match) -> List[int]:
    named = [int(value) for name, value in match.found.groupdict().items() if name.startswith("rank") and value is not None and value.isdecimal()]
    if named or not match.printed.ranks:
        return named
    process = match.failure.process
    nobody = process is not None and process.alone  # rank 0 of 1: there is nobody to blame
    return [] if nobody or match.failure.rank is None else [match.failure.rank]


def _verdict(rule: Rule, match: Match) -> str:
    said: Optional[str] = match.printed.says and match.printed.says.format_map(_Groups(match.found.groupdict(default="?")))
    return said or rule.title


class _Groups(dict):  # type: ignore[type-arg]  # format_map asks for a mapping; a name that a text lacks stays a question mark
    def __missing__(self, key: str) -> str:
        return "?"
