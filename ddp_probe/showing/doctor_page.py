"""Prints what doctor found: the verdict, what fails with its remedy, then the rest, one line each."""

from collections import Counter
from typing import Dict, Iterator, List, Mapping, Sequence

from ddp_probe.doctor.check import FAIL, OK, ORDER, SKIPPED, UNKNOWN, WARN, Check, Result
from ddp_probe.doctor.checks import HUNDREDS
from ddp_probe.doctor.host_meeting import HostMeeting
from ddp_probe.showing import paint
from ddp_probe.showing.hosts_table import host_lines
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, paragraph, sentence

_STYLES: Dict[str, str] = {OK: paint.GOOD, WARN: paint.WARN, FAIL: paint.BAD, UNKNOWN: paint.WARN, SKIPPED: paint.QUIET}
_DETAILS = 16


def lines(results: Sequence[Result], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the whole page."""
    yield from _verdict(Counter(result.answer.status for result in results), width, say)
    yield from _results(results, width, say)


def of_hosts(meeting: HostMeeting, results: Sequence[Result], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the page over several hosts: the verdict over the checks of each host and of all together comes first, each check counted once."""
    statuses: Dict[str, str] = {result.check.slug: result.answer.status for result in results}
    for result in (result for host in meeting.hosts for result in host.results):
        statuses[result["slug"]] = min(statuses.get(result["slug"], SKIPPED), result["status"], key=ORDER.index)
    yield from _verdict(Counter(statuses.values()), width, say)
    yield StyledLine("")
    yield from host_lines(meeting, width, say)
    yield from _results(results, width, say)


def _verdict(numbers: Mapping[str, int], width: int, say: Language) -> Iterator[StyledLine]:
    worst = [status for status in (FAIL, UNKNOWN, WARN) if numbers.get(status)]
    yield from sentence(summary(numbers, say), width, style=_STYLES[worst[0]] if worst else paint.GOOD)


def _results(results: Sequence[Result], width: int, say: Language) -> Iterator[StyledLine]:
    for status in (FAIL, UNKNOWN, WARN):
        for result in results:
            if result.answer.status == status:
                yield StyledLine("")
                yield from _in_full(result, width, say)
    yield from _listing([result for result in results if result.answer.status == OK], width, say)
    yield from _skipped([result for result in results if result.answer.status == SKIPPED], width, say)


def summary(counts: Mapping[str, int], say: Language = ENGLISH) -> str:
    """Return the verdict in one sentence."""
    numbers = {status: counts.get(status, 0) for status in _STYLES}
    words = [
        say("%d check fails" if numbers[FAIL] == 1 else "%d checks fail") % numbers[FAIL] if numbers[FAIL] else say("No check fails"),
        say("%d could not be checked") % numbers[UNKNOWN] if numbers[UNKNOWN] else "",
        say("%d warns" if numbers[WARN] == 1 else "%d warn") % numbers[WARN] if numbers[WARN] else "",
        say("%d ok") % numbers[OK] if numbers[OK] else "",
        say("%d skipped") % numbers[SKIPPED] if numbers[SKIPPED] else "",
    ]
    return say(", ").join(word for word in words if word) + say(".")


def _in_full(result: Result, width: int, say: Language) -> Iterator[StyledLine]:
    check, answer = result.check, result.answer
    yield StyledLine("%s %s %s" % (check.id, check.slug, say(answer.status)), _STYLES[answer.status])
    if not say.is_english:
        yield from sentence(say("expected: %s") % say.of(check, "title"), width, 4, paint.STRONG)
    yield from sentence(say.text(answer.saw), width, 4)
    for detail in answer.details[:_DETAILS]:
        yield from sentence(say.text(detail), width, 6, paint.QUIET)
    if answer.remedy:
        yield from sentence(say("do: %s") % say.text(answer.remedy), width, 4, paint.GOOD)


def _listing(results: List[Result], width: int, say: Language) -> Iterator[StyledLine]:
    hundred = ""
    for result in results:
        if result.check.id[:4] != hundred:
            hundred = result.check.id[:4]
            yield StyledLine("")
            yield StyledLine(say(HUNDREDS[hundred]), paint.STRONG)
        yield StyledLine("  %s %s %s" % (say("ok"), result.check.id, result.check.slug), paint.GOOD)
        if not say.is_english:
            yield from sentence(say.of(result.check, "title"), width, 5)
        yield from sentence(say.text(result.answer.saw), width, 5, paint.QUIET)
        for detail in result.answer.details[:_DETAILS]:
            yield from sentence(say.text(detail), width, 7, paint.QUIET)


def _skipped(results: List[Result], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield the reasons, each with the checks that it holds for."""
    reasons: Dict[str, List[str]] = {}
    for result in results:
        reasons.setdefault(say.text(result.answer.saw), []).append("%s %s" % (result.check.id, result.check.slug))
    if reasons:
        yield StyledLine("")
        yield StyledLine(say("skipped"), paint.STRONG)
    for because, names in reasons.items():
        yield from sentence("%s %s" % (because, ", ".join(names)), width, 5, paint.QUIET)


def page(check: Check, width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the page of one check, as `explain` prints it."""
    yield StyledLine("%s %s" % (check.id, check.slug), paint.STRONG)
    yield from paragraph(say.of(check, "title"), width)
    parts = (
        (say("what it looks at"), say.of(check, "looks_at")),
        (say("what to do if it fails"), say.of(check, "remedy")),
        (say("needs"), ", ".join(check.needs)),
    )
    for heading, text in parts:
        if text:
            yield StyledLine("")
            yield StyledLine(heading, paint.STRONG)
            yield from paragraph(text, width, 2)
    if check.live:
        yield StyledLine("")
        yield StyledLine(say("It uses cards or starts ranks: 'doctor --static' leaves it out."), paint.QUIET)


def listing(checks: Sequence[Check], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield all checks, grouped by the hundred."""
    hundred = ""
    for check in checks:
        if check.id[:4] != hundred:
            hundred = check.id[:4]
            yield StyledLine("")
            yield StyledLine("%sxx  %s" % (hundred, say(HUNDREDS[hundred])), paint.STRONG)
        yield StyledLine("  %s  %s" % (check.id, check.slug))
        yield from paragraph(say.of(check, "title"), width, 10, paint.QUIET)
