"""Drafts a site's own rule from the passage of a log that no rule answers."""

import json
import re
from typing import NamedTuple, Optional

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.reading.model import Failed
from ddp_probe.shared.masks import mask
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import command

_LONGEST = 160  # Characters of the line that the pattern is made from.
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_PATH = re.compile(r"(?<=')(/[^'\n]+)(?=')")
_WORD = re.compile(r"[A-Za-z]{3,}")

_DRAFT = """\
# Save it as NAME.toml in the folder of DDP_PROBE_RULES; the name of the file is the name of the rule.
# Fill in what is empty, then: python -m ddp_probe rules NAME.toml

title = ""      # One sentence: what is wrong.
verdict = %(verdict)s
remedy = ""     # What to do.
restart = ""    # If nothing is changed, a restart helps: no, yes, elsewhere, after or unknown.
match = %(pattern)s
must_match = %(line)s
must_not_match = ""    # A line that looks like it and has another cause.
"""


class RuleDraft(NamedTuple):
    """The parts of a draft that a log fills in."""

    pattern: str
    line: str
    verdict: str


def unanswered(diagnosis: Diagnosis) -> Optional[Failed]:
    """Return the first failure of a plain log if no rule answers it."""
    if diagnosis.findings or diagnosis.run.processes:
        return None
    fatal = [failure for failure in diagnosis.run.failures if failure.fatal and failure.uncaught]
    causes = [failure for failure in fatal if not failure.consequence]
    return next(iter(causes or fatal), None)


def offer(failure: Failed) -> Text:
    """Return how a site that knows the cause of a failure makes a rule of it."""
    command_line = command("rules", "--draft", failure.at.file)
    return say("If you know the cause, {draft} begins a rule of your own.", draft=command_line)


def draft(failure: Failed) -> RuleDraft:
    """Return what a rule for a failure has to have, made from its own words."""
    line = mask(_first_line(failure))[:_LONGEST].rstrip()
    pattern = verdict = ""
    for number, part in enumerate(_PATH.split(line)):
        if number % 2:  # A path, between two parts of the line.
            name = "path%d" % number if number > 1 else "path"
            pattern += r"(?P<%s>[^'\n]*)" % name
            verdict += "{%s}" % name
        else:
            pattern += _NUMBER.sub(_any_number, _SPECIAL.sub(r"\\\g<0>", part))
            verdict += part.replace("{", "{{").replace("}", "}}")
    return RuleDraft(pattern, line, verdict)


def _any_number(match: "re.Match[str]") -> str:
    return "0x[0-9a-f]+" if "x" in match.group() else r"\d+"


def toml(parts: RuleDraft) -> str:
    """Return the draft as a file."""
    verdict = json.dumps(parts.verdict, ensure_ascii=False)
    return _DRAFT % {"pattern": _literal(parts.pattern), "line": _literal(parts.line), "verdict": verdict}


def _first_line(failure: Failed) -> str:
    text = failure.text if failure.type else failure.headline or failure.message
    return next((line.strip() for line in text.splitlines() if _WORD.search(line)), text.strip())


def _literal(text: str) -> str:
    """Return a text of TOML in which a backslash is a backslash, if it has one."""
    if "'''" in text or not text.isprintable() or text.endswith("'"):
        return json.dumps(text, ensure_ascii=False)
    return "'%s'" % text if "'" not in text else "'''%s'''" % text
