"""The examples of the rules: small logs, one file each, with a header that says what the rule must answer.

`explain` prints them and the tests hold the rules to them; a report never reads them. They are in tests/rules, one folder for a rule, and are
installed as data.
"""

import os
from typing import Dict, NamedTuple, Sequence, Tuple

from ddp_probe.shared.regular_files import open_text

_ANSWERS = ("found", "clear", "undecided")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = (os.path.join(_PACKAGE, "rule_examples"), os.path.join(os.path.dirname(_PACKAGE), "tests", "rules"))
"""Installed; or in a checkout, beside the package."""


class Example(NamedTuple):
    """A small log, and what the rule must answer to it."""

    name: str  # What happens in it, as a sentence.
    log: str  # JSON lines of several processes, records of a ledger, or the text that a job printed.
    answer: str = "found"  # found, clear or undecided.
    ranks: Tuple[int, ...] = ()
    families: Tuple[str, ...] = ()  # Kinds of texts that people bring.
    version: str = ""  # The version of what prints it.
    job: str = ""  # The program of tests/jobs that it was recorded from, cut to the fields that matter.


def of(slug: str) -> Tuple[Example, ...]:
    """Return the examples of a rule, by the names of their files; a ValueError says what is wrong with a header."""
    folder = next((path for path in (os.path.join(parent, slug) for parent in _FOLDERS) if os.path.isdir(path)), "")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".log")) if folder else []
    return tuple(_read(folder, name) for name in names)


def of_lines(must_match: Sequence[str], must_not_match: Sequence[str]) -> Tuple[Example, ...]:
    """Return the lines of a site's own rule as its examples."""
    matching = [Example("It must match.", lines) for lines in must_match]
    return (*matching, *(Example("It must not match.", lines, "clear") for lines in must_not_match))


def _read(folder: str, name: str) -> Example:
    with open_text(os.path.join(folder, name)) as file:
        head, _, log = file.read().partition("\n\n")
    try:
        return _example(head, log)
    except ValueError as exc:
        raise ValueError("%s/%s: %s" % (os.path.basename(folder), name, exc)) from exc


def _example(head: str, log: str) -> Example:
    fields: Dict[str, str] = dict(map(_field, head.splitlines()))
    ranks = tuple(map(int, fields.pop("ranks", "").split()))
    families = tuple(name.strip() for name in fields.pop("families", "").split(",") if name.strip())
    given = (fields.pop(name, "") for name in ("version", "job"))
    example = Example(fields.pop("name", ""), log, fields.pop("answer", ""), ranks, families, *given)
    if fields:
        raise ValueError("the header has %s; it may have name, answer, ranks, families, version and job" % ", ".join(fields))
    if not example.name or example.answer not in _ANSWERS:
        raise ValueError("the header needs a name, and an answer, which is one of %s" % ", ".join(_ANSWERS))
    return example


def _field(line: str) -> Tuple[str, str]:
    name, colon, text = line.partition(": ")
    if not colon:
        raise ValueError("the header ends with an empty line, and %r is not a field of it" % line[:40])
    return name, text
