"""What a job did in spite of something: calls that DDP_PROBE_FIX changed, starts that failed before the last one, failures that were survived."""

from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ddp_probe.judging import change, wrap_calls
from ddp_probe.judging.rule import WARNING, Finding, Rule, Undecided, shown
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.words import at, capital, named, ordinal

_Made = List[Tuple[LoggedProcess, "LoggedCall[schema.Remedied]"]]


def repairs(run: Run, rules: Sequence[Rule]) -> Iterator[Finding]:
    """Yield what was repaired, one finding for each remedy."""
    made: Dict[str, _Made] = {}
    for process in run.processes:
        for call in process.calls(schema.Remedied):
            if not call.begin.precaution:
                made.setdefault(call.begin.remedy, []).append((process, call))
    for remedy, changes in made.items():
        rule = _rule(remedy, changes[0][1].begin, rules)
        if rule is not None:
            yield _finding(rule, remedy, changes, _for_good(run, rule, changes[0][0]))


def _rule(remedy: str, first: schema.Remedied, rules: Sequence[Rule]) -> Optional[Rule]:
    """Return the rule of what a remedy repairs; device-ids are refused for two reasons, and the remedy says for which."""
    known = sorted((rule for rule in rules if rule.fix == remedy), key=lambda rule: rule.id)
    by_torch = [rule for rule in known if rule.slug.endswith("-on-old-torch")]
    return next(iter(by_torch if "this torch" in first.because else known), None)


def _for_good(run: Run, rule: Rule, process: LoggedProcess) -> change.Change:
    """Return the change in the job's call from the rule that has one for a call which did not fail."""
    wrapped = next((each for each in wrap_calls.wraps(run) if each.process is process), None)
    return wrap_calls.only_on_a_card(wrapped) if wrapped is not None and rule.slug == "device-ids-on-cpu" else ()


def _finding(rule: Rule, remedy: str, changes: _Made, for_good: change.Change) -> Finding:
    first = changes[0][1]
    ranks = [process.rank for process, _ in changes if process.rank is not None]
    site = first.begin.site
    what = changed(first.begin.before, first.begin.after)
    return rule.found(
        ranks=ranks,
        verdict="The job succeeded because DDP_PROBE_FIX=%s changed a call%s on %s: %s, because %s."
        % (remedy, at(site), named(sorted(set(ranks))), what, first.begin.because),
        evidence=[shown(call, changed(call.begin.before, call.begin.after)) for _, call in changes[:4]],
        when=min(call.when for _, call in changes),
        remedy=first.begin.for_good or rule.remedy,
        change=for_good,
        severity=WARNING,
        fix=remedy,
    )


def changed(before: Dict[str, str], after: Dict[str, str]) -> str:
    """Say what a remedy changed; a call that it left out has nothing after."""
    if not after:
        return "%s was skipped" % ", ".join("%s(%s)" % pair for pair in before.items())
    return "%s became %s" % tuple(", ".join("%s=%s" % pair for pair in values.items()) or "nothing" for values in (before, after))


# A job that did well only at a later start: why the failed starts before it died; each is judged as a separate run.

_NEXT = "python -m ddp_probe logs shows that start as well, by its time; its cause may return."


def failed_starts(run: Run, judge: Callable[[Run], Any]) -> Iterator[Union[Finding, Undecided]]:
    """Yield the cause of each failed start of a run whose last start succeeded."""
    last = ordinal(len(run.earlier_generations))
    for number, attempt in enumerate(run.earlier_generations):
        diagnosis = judge(attempt)
        lead = "The job succeeded at its %s start; the %s start failed" % (last, ordinal(number))
        if diagnosis.findings:
            cause = diagnosis.findings[0]
            yield replace(cause, severity=WARNING, verdict="%s: %s" % (lead, cause.verdict))
        elif diagnosis.undecided:
            yield Undecided("failed-start", "%s: %s" % (lead, diagnosis.undecided[0].because), next=_NEXT)


# A job that failed, and had survived other failures before: those stay on the page as what they are, below the cause.

_MOST = 6  # Different failures.


def note_survived(run: Run, findings: Sequence[Finding]) -> None:
    """Say in the inventory which failures the job caught and outlived; not those that a finding speaks of."""
    known = {id(failure) for finding in findings for failure in finding.explains}
    alike: Dict[Tuple[str, str], List[Failed]] = {}
    for failure in run.failures:
        if failure.process is not None and not (failure.fatal or failure.consequence or id(failure) in known):
            alike.setdefault((failure.said(120).rstrip("."), at(failure.site)), []).append(failure)
    for (said, where), failures in list(alike.items())[:_MOST]:
        who = capital(named(sorted({failure.rank for failure in failures if failure.rank is not None})))
        note = "%s caught %s%s, and went on: nothing shows that what failed later follows from it." % (who, said, where)
        if note not in run.inventory.notes:
            run.inventory.notes.append(note)
