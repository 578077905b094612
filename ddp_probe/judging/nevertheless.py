"""What a job did in spite of something: calls that DDP_PROBE_FIX changed, starts that failed before the last one, failures that were survived."""

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ddp_probe.judging import change, wrap_calls
from ddp_probe.judging.rule import WARNING, Finding, Rule, shown
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, named, quoted

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
