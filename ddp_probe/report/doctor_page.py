"""Prints what doctor found: the verdict, what fails with its remedy, then the rest, one line each."""

from typing import Dict, Iterator, List, Sequence

from ddp_probe.diagnose.words import counted
from ddp_probe.doctor.check import FAIL, OK, SKIPPED, UNKNOWN, WARN, Check, Result
from ddp_probe.doctor.checks import HUNDREDS
from ddp_probe.report import paint
from ddp_probe.report.layout import StyledLine, paragraph, sentence

_STYLES: Dict[str, str] = {OK: paint.GOOD, WARN: paint.WARN, FAIL: paint.BAD, UNKNOWN: paint.WARN, SKIPPED: paint.QUIET}
_DETAILS = 16


def lines(results: Sequence[Result], width: int) -> Iterator[StyledLine]:
    """Yield the whole page."""
    worst = [status for status in (FAIL, UNKNOWN, WARN) if any(result.answer.status == status for result in results)]
    yield from sentence(summary(results), width, style=_STYLES[worst[0]] if worst else paint.GOOD)
    for status in worst:
        for result in results:
            if result.answer.status == status:
                yield StyledLine("")
                yield from _in_full(result, width)
    yield from _listing([result for result in results if result.answer.status == OK], width)
    yield from _skipped([result for result in results if result.answer.status == SKIPPED], width)


def summary(results: Sequence[Result]) -> str:
    """Return the verdict in one sentence."""
    numbers = {status: sum(result.answer.status == status for result in results) for status in _STYLES}
    words = [
        counted(numbers[FAIL], "check fails", "checks fail") if numbers[FAIL] else "No check fails",
        counted(numbers[UNKNOWN], "could not look", "could not look") if numbers[UNKNOWN] else "",
        counted(numbers[WARN], "warns", "warn") if numbers[WARN] else "",
        "%d ok" % numbers[OK] if numbers[OK] else "",
        "%d skipped" % numbers[SKIPPED] if numbers[SKIPPED] else "",
    ]
    return ", ".join(word for word in words if word) + "."


def _in_full(result: Result, width: int) -> Iterator[StyledLine]:
    check, answer = result.check, result.answer
    yield StyledLine("%s %s %s" % (check.id, check.slug, answer.status), _STYLES[answer.status])
    yield from sentence(answer.saw, width, 4)
    for detail in answer.details[:_DETAILS]:
        yield from sentence(detail, width, 6, paint.QUIET)
    if answer.remedy:
        yield from sentence("do: " + answer.remedy, width, 4, paint.GOOD)


def _listing(results: List[Result], width: int) -> Iterator[StyledLine]:
    hundred = ""
    for result in results:
        if result.check.id[:4] != hundred:
            hundred = result.check.id[:4]
            yield StyledLine("")
            yield StyledLine(HUNDREDS[hundred], paint.STRONG)
        yield StyledLine("  ok %s %s" % (result.check.id, result.check.slug), paint.GOOD)
        yield from sentence(result.answer.saw, width, 5, paint.QUIET)
        for detail in result.answer.details[:_DETAILS]:
            yield from sentence(detail, width, 7, paint.QUIET)


def _skipped(results: List[Result], width: int) -> Iterator[StyledLine]:
    """Yield the reasons, each with the checks that it holds for."""
    reasons: Dict[str, List[str]] = {}
    for result in results:
        reasons.setdefault(result.answer.saw, []).append("%s %s" % (result.check.id, result.check.slug))
    if reasons:
        yield StyledLine("")
        yield StyledLine("skipped", paint.STRONG)
    for because, names in reasons.items():
        yield from sentence("%s %s" % (because, ", ".join(names)), width, 5, paint.QUIET)


def page(check: Check, width: int) -> Iterator[StyledLine]:
    """Yield the page of one check, as `explain` prints it."""
    yield StyledLine("%s %s" % (check.id, check.slug), paint.STRONG)
    yield from paragraph(check.title, width)
    for heading, text in (("what it looks at", check.looks_at), ("what to do if it fails", check.remedy), ("needs", ", ".join(check.needs))):
        if text:
            yield StyledLine("")
            yield StyledLine(heading, paint.STRONG)
            yield from paragraph(text, width, 2)
    if check.live:
        yield StyledLine("")
        yield StyledLine("It uses cards or starts ranks: 'doctor --static' leaves it out.", paint.QUIET)


def listing(checks: Sequence[Check], width: int) -> Iterator[StyledLine]:
    """Yield all checks, grouped by the hundred."""
    hundred = ""
    for check in checks:
        if check.id[:4] != hundred:
            hundred = check.id[:4]
            yield StyledLine("")
            yield StyledLine("%sxx  %s" % (hundred, HUNDREDS[hundred]), paint.STRONG)
        yield StyledLine("  %s  %s" % (check.id, check.slug))
        yield from paragraph(check.title, width, 10, paint.QUIET)
