"""Asks every rule about a run and weighs the answers: the first failure wins, what follows from it is folded under it.

Found means that a rule named a cause. Clear means that every rank is proven to have finished normally and no rule found anything. Everything else is
undecided, with reasons, each with the next thing to try.
"""

import os
from dataclasses import replace
from itertools import chain
from typing import Any, Callable, Iterable, List, NamedTuple, Sequence, Tuple

from ddp_probe.judging import looks, printed, proof, site_rules
from ddp_probe.judging.causes import group_of
from ddp_probe.judging.failed_starts import failed_starts
from ddp_probe.judging.nevertheless import repairs
from ddp_probe.judging.open_questions import open_questions
from ddp_probe.judging.rule import ERROR, Evidence, Finding, Rule, Undecided, explained
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.judging.survived_failures import note_survived
from ddp_probe.judging.waiting import of_others
from ddp_probe.reading import job_source
from ddp_probe.reading.model import Run
from ddp_probe.shared import settings
from ddp_probe.shared.ledger_schema import SUFFIX
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

# What a rank does not need the others for.
_ITSELF = (
    "own_failure",
    "out_of_memory",
    "host_limits",
    "module_device_wrong_at_wrap",
    "accelerator_or_backend_unavailable",
    "version_or_build_skew",
    "missing_map_location",
    "checkpoint_file_bad",
    "checkpoint_vs_loader",
)
FOUND, CLEAR, UNDECIDED = "found", "clear", "undecided"


class Diagnosis(NamedTuple):
    """The result for one run.

    verdict: found (a rule names a cause), clear (every rank finished normally, as proven by the logs), or undecided (neither, with the reasons).
    """

    verdict: str
    findings: List[Finding]
    undecided: List[Undecided]
    run: Run

    def exit_code(self, strict: bool = False) -> int:
        """Return the exit code of a command that prints this: 1 for an error, or strictly for any finding; 3 for an open question."""
        if any(strict or finding.severity == ERROR for finding in self.findings):
            return 1
        return 3 if self.undecided else 0


def judge(run: Run, chosen: Sequence[Any] = ()) -> Diagnosis:
    """Ask the rules, all of them unless some are given."""
    with job_source.relative_to(job_source.working_folder(run)):
        return _judge(run, chosen)


def _judge(run: Run, chosen: Sequence[Any]) -> Diagnosis:
    asked = chosen or modules()
    rules = {rule_of(module).slug: rule_of(module) for module in (*modules(), *chosen)}
    answers = list(chain.from_iterable(_ask(module, run) for module in asked))
    read = list(chain.from_iterable(_read(module, run) for module in asked))
    undecided = [answer for answer in answers if isinstance(answer, Undecided)]
    findings = _weigh(_better([answer for answer in answers if isinstance(answer, Finding)], rules))
    if findings and rules[findings[0].slug].needs_all and not run.whole:
        undecided += [_unsure(finding) for finding in findings]
        findings = []
    findings += _beside([answer for answer in read if isinstance(answer, Finding)], findings, rules)
    if run.failures and not chosen:
        findings = _with_site_rules(findings, run, rules)
    if not any(finding.severity == ERROR for finding in findings):
        undecided += [answer for answer in read if isinstance(answer, Undecided)]
        undecided += looks.open_questions(run) if looks.only(run) else open_questions(run, undecided)
        if not undecided:
            findings, undecided = _nevertheless(run, findings, list(rules.values()))
    else:
        note_survived(run, findings)
    undecided = _still_open(undecided, findings)
    verdict = UNDECIDED if undecided else CLEAR
    if findings:
        verdict = FOUND
    return Diagnosis(verdict, [_with_dumps(_not_again(finding, run), run) for finding in findings], undecided, run)


def _still_open(undecided: List[Undecided], findings: List[Finding]) -> List[Undecided]:
    """Drop each question about failures that a finding accounts for: a timeout that no rule understands by itself, if the ledgers explain it."""
    known = set(map(id, explained(finding for finding in findings if finding.severity == ERROR)))
    return [answer for answer in undecided if not answer.explains or not known.issuperset(map(id, answer.explains))]


def _nevertheless(run: Run, findings: List[Finding], rules: List[Rule]) -> Tuple[List[Finding], List[Undecided]]:
    """Return what a run did well in spite of: calls that were repaired, and starts that failed."""
    starts = list(failed_starts(run, judge))
    of_starts = [answer for answer in starts if isinstance(answer, Finding)]
    undecided = [answer for answer in starts if isinstance(answer, Undecided)]
    return [*findings, *of_starts, *repairs(run, rules)], undecided


def _unsure(finding: Finding) -> Undecided:
    """Turn a finding into a question: the first failure among the lines may not be the first, as others are missing."""
    because = say("{verdict} Lines or files are missing, so the cause may be in them.", verdict=finding.verdict)
    return Undecided(finding.slug, because, tuple(finding.explains), proof.NEXT_HOLES)


def _ask(module: Any, run: Run) -> List[Any]:
    """Ask a rule about the events; without check(), its texts decide. A rule that fails is undecided; with DDP_PROBE_STRICT=1 it raises."""
    if (not run.processes and not run.launchers) or (looks.only(run) and looks.NEEDS not in rule_of(module).needs):
        return []
    check = getattr(module, "check", None)
    return _guarded(module, lambda: check(run) if check else printed.by_text(rule_of(module), run))


def _read(module: Any, run: Run) -> List[Any]:
    """Look for the texts of a rule in the plain logs; a rule that no text decides has a read() for them."""
    if not run.texts:
        return []
    read = getattr(module, "read", None)
    return _guarded(module, lambda: read(run) if read else printed.by_text(rule_of(module), run, plain=True))


def _guarded(module: Any, ask: Callable[[], Iterable[Any]]) -> List[Any]:
    try:
        return list(ask())
    except Exception as exc:
        if settings.get(settings.STRICT, os.environ):
            raise
        error = quoted("%s: %s" % (type(exc).__name__, exc))
        return [rule_of(module).undecided(say("The rule itself failed: {error}", error=error))]


def _beside(of_texts: List[Finding], findings: List[Finding], rules: "dict[str, Rule]") -> List[Finding]:
    """Return what plain logs add to the findings from events.

    They are weaker evidence, and a line's number is not a time to compare with.
    """
    groups = {group_of(finding.cause) for finding in findings}
    slugs = {finding.slug for finding in findings}
    new = [finding for finding in of_texts if group_of(finding.cause) not in groups]
    new = [finding for finding in new if not slugs.intersection(rules[finding.slug].yields_to)]
    if any(finding.severity == ERROR for finding in findings):
        new = [finding for finding in new if not rules[finding.slug].last_resort]
    return _weigh(_better(_itself_first(new), rules))


def _with_site_rules(findings: List[Finding], run: Run, rules: "dict[str, Rule]") -> List[Finding]:
    """Ask the site's own rules: they answer what ours leave open, and yield if one of ours names a cause."""
    of_site = site_rules.loaded()
    site_rules.note_refused(run, of_site.refused)
    answers: List[Finding] = []
    for plain in (False, True):
        if not answers:
            asked = [list(printed.by_text(rule.RULE, run, plain)) for rule in of_site.rules]
            answers = _weigh(list(chain.from_iterable(asked)))
    if not answers:
        return findings
    errors = [finding for finding in findings if finding.severity == ERROR]
    if any(not rules[finding.slug].last_resort for finding in errors):
        return [_yielded_to(finding, answers[0]) if finding in errors else finding for finding in findings]
    return [*answers, *(finding for finding in findings if finding not in errors)]


def _yielded_to(finding: Finding, of_site: Finding) -> Finding:
    """Say beside a finding of ours that a rule of the site matches, too."""
    template = "The site's rule {slug} matches here, too; it yields to {id}."
    place = of_site.evidence[0]
    beside = Evidence(place.file, place.line, place.site, say(template, slug=of_site.slug, id=finding.id))
    return replace(finding, evidence=[*finding.evidence, beside])


def _itself_first(findings: List[Finding]) -> List[Finding]:
    """Drop what ranks say about others if a rank that says nothing about them failed by itself: lines of several ranks are not ordered by time."""
    waits = [finding for finding in findings if finding.severity == ERROR and finding.explains and of_others(finding.explains[0])]
    speak = {failure.rank for failure in explained(waits)} - {None}
    itself = [finding for finding in findings if group_of(finding.cause) in _ITSELF and finding not in waits]
    itself = [finding for finding in itself if not speak.intersection(finding.ranks)]
    return [finding for finding in findings if finding not in waits] if itself else findings


def _better(findings: List[Finding], rules: "dict[str, Rule]") -> List[Finding]:
    """Drop each finding that another one supersedes."""
    slugs = {finding.slug for finding in findings}
    kept = [finding for finding in findings if not slugs.intersection(rules[finding.slug].yields_to)]
    certain = [finding for finding in kept if not rules[finding.slug].last_resort]
    return certain if any(finding.severity == ERROR for finding in certain) else kept


def _weigh(findings: List[Finding]) -> List[Finding]:
    """Order by time; fold later errors under the first one."""
    errors = sorted((finding for finding in findings if finding.severity == ERROR), key=_time)
    warnings = sorted((finding for finding in findings if finding.severity != ERROR), key=_time)
    for later in errors[1:]:
        followed = say("{id} {slug}: {verdict}", id=later.id, slug=later.slug, verdict=later.verdict)
        errors[0].consequences.append(followed)
        errors[0].explains.extend(later.explains)
    return errors[:1] + warnings


def _not_again(finding: Finding, run: Run) -> Finding:
    """A remedy that was on in this run, and did not help, is not offered once more."""
    asked = [process.started.environment for process in run.processes if not process.is_launcher]
    if finding.fix and asked and all(finding.fix in settings.get(settings.FIX, environment) for environment in asked):
        return replace(finding, fix="")
    return finding


def _with_dumps(finding: Finding, run: Run) -> Finding:
    """Add to a finding from the ledgers what dumps of torch's Flight Recorder say."""
    if not any(evidence.file.endswith(SUFFIX) for evidence in finding.evidence):
        return finding
    from ddp_probe.judging import recorder_check  # It reads pickles, and few findings need it.

    return recorder_check.beside(finding, run)


def _time(finding: Finding) -> Tuple[float, str]:
    return finding.when, finding.id
