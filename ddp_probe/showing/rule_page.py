"""A rule's page, as printed by `explain`: meaning, symptom, change, and small example logs."""

import json
from collections import Counter
from typing import Any, Dict, Iterator, Sequence

from ddp_probe.judging.examples import Example
from ddp_probe.judging.rule import AFTER, ELSEWHERE, ERROR, NO, UNKNOWN, YES, Rule
from ddp_probe.shared import schema
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, paragraph, wrap
from ddp_probe.showing.paint import QUIET, STRONG

_ENVELOPE = frozenset(("event", *schema.ENVELOPE)) - {"thread", "failure"}
HUNDREDS: Dict[str, str] = {
    "DDP1": "the model's devices when it is wrapped",
    "DDP2": "accelerators and backends",
    "DDP3": "which rank uses which card",
    "DDP4": "launching and joining",
    "DDP5": "checkpoints",
    "DDP6": "ranks that diverge",
    "DDP7": "models that differ between ranks",
    "DDP8": "versions, installations and environment",
}
RESTARTS: Dict[str, str] = {
    NO: "no: the code or its settings fail again",
    YES: "yes: it was chance",
    ELSEWHERE: "elsewhere: it is this host or card",
    AFTER: "after: something has to be freed or waited for first",
    UNKNOWN: "unknown: the cause can be of several kinds",
}


def page(rule: Rule, examples: Sequence[Example], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the page of one rule."""
    yield StyledLine("%s %s" % (rule.id, rule.slug), STRONG)
    yield from paragraph(say.of(rule, "title"), width)
    yield StyledLine("")
    yield from _part(say("what you see"), say.of(rule, "symptom"), width)
    yield from _part(say("what proves it"), say.of(rule, "evidence"), width)
    yield from _part(say("what to change"), say.of(rule, "remedy"), width)
    if rule.fix:
        yield from paragraph(say("Or, for one run without editing: DDP_PROBE_FIX=%s") % rule.fix, width, 2)
    yield from _part(say("whether a restart helps"), say(RESTARTS[rule.restart]), width)
    yield from _part(say("cause"), rule.cause + ("" if rule.severity == ERROR else " (%s)" % say(rule.severity)), width)
    if rule.needs:
        yield from _part(say("events that prove it"), ", ".join(rule.needs), width)
    if rule.yields_to:
        yield from _part(say("is superseded by"), ", ".join(rule.yields_to), width)
    yield StyledLine("")
    yield StyledLine(say("examples"), STRONG)
    for example in examples:
        yield from _example(example, width, say)


def listing(rules: Sequence[Rule], width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield all rules, grouped by the hundred."""
    hundred = ""
    for rule in rules:
        if rule.id[:4] != hundred:
            yield from [StyledLine("")] if hundred else []
            hundred = rule.id[:4]
            yield StyledLine("%sxx%s" % (hundred, "  " + say(HUNDREDS[hundred]) if hundred in HUNDREDS else ""), STRONG)
        yield StyledLine("  %s  %s" % (rule.id, rule.slug))
        yield from paragraph(say.of(rule, "title"), width, 10, QUIET)


def hundreds(pages: Sequence[Any], about: Dict[str, str], say: Language) -> Iterator[StyledLine]:
    """Yield a line for each hundred of rules or checks, with how many it has and what it is about."""
    for hundred, count in Counter(page.id[:4] for page in pages).items():
        yield StyledLine("%sxx  %3d  %s" % (hundred, count, say(about[hundred])))


def ways(say: Language) -> Iterator[StyledLine]:
    """Say how to read on from the hundreds."""
    yield StyledLine("")
    for words, what in (("DDP6", "the rules of a group"), ("hang", "those with a word"), ("--all", "all")):
        yield StyledLine("python -m ddp_probe explain %-6s %s" % (words, say(what)), QUIET)


def _part(heading: str, text: str, width: int) -> Iterator[StyledLine]:
    yield StyledLine(heading, STRONG)
    yield from paragraph(text, width, 2)


def _example(example: Example, width: int, say: Language) -> Iterator[StyledLine]:
    ranks = say(" on %s") % say.text(_ranks(example.ranks)) if example.ranks else ""
    yield from paragraph("%s -> %s%s" % (example.name, say(example.answer), ranks), width, 2)
    for text in example.log.strip("\n").split("\n"):
        for line in wrap(_shortened(text), width, "    ", "        "):
            yield StyledLine(line, QUIET)


def _ranks(ranks: Sequence[int]) -> str:
    from ddp_probe.wording.words import named

    return named(ranks)


def _shortened(text: str) -> str:
    """Return an event as `rank 0  ddp.init begin at t.py:28: field=value`; a line of a plain log is unchanged."""
    if not text.startswith('{"'):
        return text
    event: Dict[str, Any] = json.loads(text)
    who = "rank %d: " % event["rank"] if event.get("rank") is not None else ""
    site = event.get("site")
    where = " at %s:%d" % (site["file"], site["line"]) if site else ""
    fields = ["%s=%s" % (name, _value(value)) for name, value in event.items() if name not in _ENVELOPE]
    return " ".join(["%s%s%s%s" % (who, event["event"], " " + event["phase"] if event.get("phase") else "", where), *fields])


def _value(value: Any) -> str:
    """Return a value without JSON quotes, so that it can be wrapped at its commas."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (name, _value(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(_value, value))
    return value if isinstance(value, str) else json.dumps(value)
