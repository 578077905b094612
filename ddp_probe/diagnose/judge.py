"""Asks every rule about a run and weighs the answers: the first failure wins, what follows from it is folded under it.

Found means that a rule named a cause. Clear means that every rank ended well and no rule found anything. Everything else is undecided, with reasons.
"""

import os
from typing import Any, List, NamedTuple, Sequence, Tuple

from ddp_probe import settings
from ddp_probe.diagnose import printed
from ddp_probe.diagnose._open_questions import open_questions
from ddp_probe.diagnose.rule import ERROR, Finding, Rule, Undecided
from ddp_probe.diagnose.rules import modules, rule_of
from ddp_probe.read.model import Run

FOUND, CLEAR, UNDECIDED = "found", "clear", "undecided"
EXIT_CODES = {CLEAR: 0, FOUND: 1, UNDECIDED: 3}


class Diagnosis(NamedTuple):
    """The answer to one run."""

    verdict: str
    findings: List[Finding]
    undecided: List[Undecided]
    run: Run

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command that prints this."""
        return EXIT_CODES[self.verdict]


def judge(run: Run, chosen: Sequence[Any] = ()) -> Diagnosis:
    """Ask the rules, all of them unless some are given."""
    asked = chosen or modules()
    found: List[Finding] = []
    undecided: List[Undecided] = []
    for module in asked:
        answers = _ask(module, run)
        found += [answer for answer in answers if isinstance(answer, Finding)]
        undecided += [answer for answer in answers if isinstance(answer, Undecided)]
    rules = {rule_of(module).slug: rule_of(module) for module in modules()}
    findings = _weigh(_better(found, rules))
    if not findings:
        undecided += open_questions(run, undecided)
    verdict = FOUND if findings else UNDECIDED if undecided else CLEAR
    return Diagnosis(verdict, findings, undecided, run)


def _ask(module: Any, run: Run) -> List[Any]:
    """A rule that fails answers that it is undecided; with DDP_PROBE_STRICT=1 it raises."""
    rule = rule_of(module)
    try:
        answers = list(module.check(run)) if run.processes or run.launchers else []
        if run.texts and not any(isinstance(answer, Finding) for answer in answers):
            answers += printed.by_text(rule, run)
    except Exception as exc:
        if settings.get(settings.STRICT, os.environ):
            raise
        return [rule.undecided("The rule itself failed: %s: %s" % (type(exc).__name__, exc))]
    return answers


def _better(found: List[Finding], rules: "dict[str, Rule]") -> List[Finding]:
    """Drop each finding that gives way to another one."""
    slugs = {finding.slug for finding in found}
    kept = [finding for finding in found if not slugs.intersection(rules[finding.slug].yields_to)]
    certain = [finding for finding in kept if not rules[finding.slug].last_resort]
    return certain if any(finding.severity == ERROR for finding in certain) else kept


def _weigh(found: List[Finding]) -> List[Finding]:
    """Order by time; fold later errors under the first one."""
    errors = sorted((finding for finding in found if finding.severity == ERROR), key=_time)
    warnings = sorted((finding for finding in found if finding.severity != ERROR), key=_time)
    for later in errors[1:]:
        errors[0].consequences.append("%s %s: %s" % (later.id, later.slug, later.verdict))
        errors[0].explains.extend(later.explains)
    return errors[:1] + warnings


def _time(finding: Finding) -> Tuple[float, str]:
    return finding.when, finding.id
