"""What a job did in spite of something: calls that DDP_PROBE_FIX changed, starts that failed before the last one, failures that were survived."""

from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ddp_probe.judging import change, wrap_calls
from ddp_probe.judging.rule import WARNING, Finding, Rule, Undecided, explained, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, command, listed, named, ordinal, quoted

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
    verdict = say(
        "The job succeeded because DDP_PROBE_FIX={fix} changed a call{at} on {who}: {change}, because {why}.",
        fix=remedy,
        at=at(site),
        who=named(ranks),
        change=changed(first.begin.before, first.begin.after),
        why=quoted(first.begin.because),
    )
    return rule.found(
        ranks=ranks,
        verdict=verdict,
        evidence=[shown(call, changed(call.begin.before, call.begin.after)) for _, call in changes[:4]],
        when=min(call.when for _, call in changes),
        remedy=quoted(first.begin.for_good),
        change=for_good,
        severity=WARNING,
        fix=remedy,
    )


def changed(before: Dict[str, str], after: Dict[str, str]) -> Text:
    """Say what a remedy changed; a call that it left out has nothing after."""
    if not after:
        return say("{call} was skipped", call=listed([quoted("%s(%s)" % pair) for pair in before.items()]))
    if not before:
        return say("nothing became {after}", after=_settings(after))
    return say("{before} became {after}", before=_settings(before), after=_settings(after))


def _settings(values: Dict[str, str]) -> Text:
    return listed([quoted("%s=%s" % pair) for pair in values.items()])


# A job that did well only at a later start: why the failed starts before it died; each is judged as a separate run.

_NEXT = say("{logs} shows that start as well, by its time; its cause may return.", logs=command("logs"))


def failed_starts(run: Run, judge: Callable[[Run], Any]) -> Iterator[Union[Finding, Undecided]]:
    """Yield the cause of each failed start of a run whose last start succeeded."""
    last = ordinal(len(run.earlier_generations))
    for number, attempt in enumerate(run.earlier_generations):
        diagnosis = judge(attempt)
        template = "The job succeeded at its {last} start; the {failed} start failed: {why}"
        if diagnosis.findings:
            cause = diagnosis.findings[0]
            verdict = say(template, last=last, failed=ordinal(number), why=cause.verdict)
            yield replace(cause, severity=WARNING, verdict=verdict)
        elif diagnosis.undecided:
            because = say(template, last=last, failed=ordinal(number), why=diagnosis.undecided[0].because)
            yield Undecided("failed-start", because, next=_NEXT)


# A job that failed, and had survived other failures before: those stay on the page as what they are, below the cause.

_MOST = 6  # Different failures.


def note_survived(run: Run, findings: Sequence[Finding]) -> None:
    """Say in the inventory which failures the job caught and outlived; not those that a finding speaks of."""
    known = set(map(id, explained(findings)))
    alike: Dict[Tuple[str, str], List[Failed]] = {}
    for failure in run.failures:
        if failure.process is not None and not (failure.fatal or failure.consequence or id(failure) in known):
            alike.setdefault((failure.said(120).rstrip("."), at(failure.site)), []).append(failure)
    for (error, where), failures in list(alike.items())[:_MOST]:
        note = say(
            "{who:capital} caught {error}{at}, and went on: nothing shows that what failed later follows from it.",
            who=named(ranks_of(failures)),
            error=quoted(error),
            at=where,
        )
        if note not in run.inventory.notes:
            run.inventory.notes.append(note)
