"""What is wrong with a rule, of this package or of a site: one check for both."""

import re
from string import Formatter
from typing import Iterator, NamedTuple

from ddp_probe.judging.rule import RESTARTS, Printed, Rule
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted


class Problem(NamedTuple):
    """One thing that is wrong, in a field of a Rule or of a Printed."""

    field: str
    text: str  # The pattern or the sentence that it is about.
    why: Text


def problems(rule: Rule) -> Iterator[Problem]:
    """Yield what is wrong with a rule, apart from what its examples show."""
    for word in (rule.restart, *(printed.restart or rule.restart for printed in rule.printed)):
        if word not in RESTARTS:
            template = "{word} is not a valid word for a restart: {words}."
            why = say(template, word=quoted(repr(word)), words=listed(RESTARTS))
            yield Problem("restart", word, why)
    for printed in rule.printed:
        yield from _of_patterns(printed)


def _of_patterns(printed: Printed) -> Iterator[Problem]:
    for field in ("pattern", "beside", "unless", "nowhere"):
        pattern = getattr(printed, field)
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as exc:
            template = "It is not a regular expression of Python: {error}."
            yield Problem(field, pattern, say(template, error=quoted(str(exc))))
            return
    names = set(re.compile(printed.pattern).groupindex)
    try:
        places = list(Formatter().parse(printed.says))
    except ValueError as exc:
        yield Problem("says", printed.says, say("It is not a template: {error}.", error=quoted(str(exc))))
        return
    for _, name, form, turn in places:
        if name is not None and (form or turn or name not in names):
            template = "No group of the pattern has the name {name}."
            yield Problem("says", printed.says, say(template, name=quoted(name)))
