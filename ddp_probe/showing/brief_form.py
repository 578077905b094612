"""The brief form: one line per finding, or one line with clear, or with undecided and the reasons. Without a path, another line names the run."""

import sys
from typing import List

from ddp_probe.judging.judge import CLEAR, FOUND, Diagnosis
from ddp_probe.judging.open_questions import unseen
from ddp_probe.judging.rule import ERROR, Finding, Undecided
from ddp_probe.showing import inventory, language, safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.wording.words import named

LONGEST = 500
MOST = 1500  # Characters of the whole form, so that a coding agent can read it at once.
_REST = "And %d more: python -m ddp_probe report"
GOOD_ORDER = "clear: %s finished normally, and no rule found a problem."
_REASONS = 3


def show(diagnosis: Diagnosis) -> None:
    """Print the lines."""
    sys.stdout.write("".join(line + "\n" for line in lines(diagnosis, language.english())))


def lines(diagnosis: Diagnosis, say: Language = ENGLISH) -> List[str]:
    """Return the lines."""
    run = diagnosis.run
    if diagnosis.verdict == FOUND:
        shown = [finding(result, say) for result in diagnosis.findings]
    else:
        shown = [clear(diagnosis) if diagnosis.verdict == CLEAR else _undecided(diagnosis, say)]
    if run.is_newest and (run.processes or run.launchers):
        since = inventory.since(run, say)
        shown.append(safe.line("run %s: %s" % (run.name or "without a name", since), LONGEST))
    if run.elsewhere:
        shown.append(safe.line("not seen: %s" % say.text(unseen(run).next), LONGEST))
    return _within(shown)


def _within(shown: List[str]) -> List[str]:
    """Return the lines that have room, the first ones, and how many others there are."""
    room, kept = MOST - len(_REST) - 9, 0
    shown = [line if len(line) < room else line[: room - 4] + " ..." for line in shown]
    while kept < len(shown) and room > len(shown[kept]):
        room -= len(shown[kept]) + 1
        kept += 1
    return shown[:kept] + ([_REST % (len(shown) - kept)] if kept < len(shown) else [])


def clear(diagnosis: Diagnosis) -> str:
    """Return the sentence for a run without problems."""
    return GOOD_ORDER % named(sorted(diagnosis.run.ranks))


def finding(result: Finding, say: Language = ENGLISH) -> str:
    """Return the line of one finding."""
    ranks = " [%s]" % named(result.ranks) if result.ranks else ""
    mark = "" if result.severity == ERROR else " %s" % result.severity
    verdict = say.text(result.verdict)
    return safe.line("%s %s%s%s: %s" % (result.id, result.slug, ranks, mark, verdict), LONGEST)


def _undecided(diagnosis: Diagnosis, say: Language) -> str:
    reasons = [say.text(reason.because) for reason in diagnosis.undecided]
    more = " And %d more." % (len(reasons) - _REASONS) if len(reasons) > _REASONS else ""
    return "undecided because: " + " ".join(safe.line(reason, LONGEST) for reason in reasons[:_REASONS]) + more


# What a report leaves open, for the forms that list each question by itself.


def questions(diagnosis: Diagnosis) -> List[Undecided]:
    """Return each open question, and that ranks of other hosts were not seen if a finding has left that out."""
    asked = list(diagnosis.undecided)
    if diagnosis.run.elsewhere:
        beyond = unseen(diagnosis.run)
        asked += [beyond] if all(reason.slug != beyond.slug for reason in asked) else []
    return asked
