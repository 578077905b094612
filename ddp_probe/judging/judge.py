"""Asks every rule about a run and weighs the answers: the first failure wins, what follows from it is folded under it.

Found means that a rule named a cause. Clear means that every rank is proven to have done well and no rule found anything. Everything else is
undecided, with reasons, each with the next thing to try.
"""

import io
import os
import pickle  # what is read is from a child of this process
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from ddp_probe.judging import printed, proof, recorder_check, rule
from ddp_probe.judging.causes import group_of
from ddp_probe.judging.nevertheless import failed_starts, repairs
from ddp_probe.judging.open_questions import open_questions
from ddp_probe.judging.rule import ERROR, Finding, Rule, Undecided
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading import on_cores
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import settings

FOUND, CLEAR, UNDECIDED = "found", "clear", "undecided"


class Diagnosis(NamedTuple):
    """The result for one run.

    verdict: found (a rule names a cause), clear (every rank ended well, as proven by the logs), or undecided (neither, with the reasons).
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


def judge(run: Run, chosen: Sequence[Any] = (), cores: int = 1) -> Diagnosis:
    """Ask the rules, all of them unless some are given; about a large run on two cores, unless `cores` is 1. 0 stands for all cores."""
    asked = chosen or modules()
    rules = {rule_of(module).slug: rule_of(module) for module in modules()}
    answers = asked_of_all(asked, run, lambda module: _ask(module, run), cores)
    read = [answer for module in asked for answer in _read(module, run)]
    undecided = [answer for answer in (*answers, *read) if isinstance(answer, Undecided)]
    findings = _weigh(_better([answer for answer in answers if isinstance(answer, Finding)], rules))
    if findings and rules[findings[0].slug].needs_all and not run.whole:
        undecided += [_unsure(finding) for finding in findings]
        findings = []
    findings += _beside([answer for answer in read if isinstance(answer, Finding)], findings, rules)
    if not any(finding.severity == ERROR for finding in findings):
        undecided += open_questions(run, undecided)
        if not undecided:
            findings, undecided = _nevertheless(run, findings, list(rules.values()))
    undecided = _still_open(undecided, findings)
    verdict = FOUND if findings else UNDECIDED if undecided else CLEAR
    rule.forget(run)
    return Diagnosis(verdict, [recorder_check.beside(_not_again(finding, run), run) for finding in findings], undecided, run)


def _still_open(undecided: List[Undecided], findings: List[Finding]) -> List[Undecided]:
    """Drop each question about failures that a finding accounts for: a timeout that no rule of its own understands, if the ledgers tell."""
    known = {id(failure) for finding in findings if finding.severity == ERROR for failure in finding.explains}
    return [answer for answer in undecided if not answer.explains or any(id(failure) not in known for failure in answer.explains)]


def _nevertheless(run: Run, findings: List[Finding], rules: List[Rule]) -> Tuple[List[Finding], List[Undecided]]:
    """Return what a run did well in spite of: calls that were repaired, and starts that failed."""
    starts = list(failed_starts(run, judge))
    told = [answer for answer in starts if isinstance(answer, Finding)]
    return [*findings, *told, *repairs(run, rules)], [answer for answer in starts if isinstance(answer, Undecided)]


def _unsure(finding: Finding) -> Undecided:
    """Turn a finding into a question: the first failure among the lines may not be the first, as others are missing."""
    because = "%s Lines or files are missing, so the cause may be in those." % finding.verdict
    return Undecided(finding.slug, because, tuple(finding.explains), proof.NEXT_HOLES)


def _ask(module: Any, run: Run) -> List[Any]:
    """Ask a rule about the events; one without a check() has its texts for it. One that fails is undecided; with DDP_PROBE_STRICT=1 it raises."""
    if not run.processes and not run.launchers:
        return []
    check = getattr(module, "check", None)
    return _guarded(module, lambda: check(run) if check else printed.by_text(rule_of(module), run))


def _read(module: Any, run: Run) -> List[Any]:
    """Look for the texts of a rule in the plain logs; a rule that no text decides has a read() for them."""
    read = getattr(module, "read", None)
    return _guarded(module, lambda: read(run) if read else printed.by_text(rule_of(module), run, plain=True)) if run.texts else []


def _guarded(module: Any, ask: Callable[[], Iterable[Any]]) -> List[Any]:
    try:
        return list(ask())
    except Exception as exc:
        if settings.get(settings.STRICT, os.environ):
            raise
        return [rule_of(module).undecided("The rule itself failed: %s: %s" % (type(exc).__name__, exc))]


def _beside(told: List[Finding], findings: List[Finding], rules: "dict[str, Rule]") -> List[Finding]:
    """Return what plain logs add to the findings from events: they are weaker evidence, and a line's number is not a time to compare with."""
    groups = {group_of(finding.cause) for finding in findings}
    slugs = {finding.slug for finding in findings}
    new = [one for one in told if group_of(one.cause) not in groups and not slugs.intersection(rules[one.slug].yields_to)]
    if any(finding.severity == ERROR for finding in findings):
        new = [one for one in new if not rules[one.slug].last_resort]
    return _weigh(_better(new, rules))


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


def _not_again(finding: Finding, run: Run) -> Finding:
    """A remedy that was on in this run, and did not help, is not offered once more."""
    asked = [process.started.environment for process in run.processes if not process.is_launcher]
    if finding.fix and asked and all(finding.fix in settings.get(settings.FIX, environment) for environment in asked):
        finding.fix = ""
    return finding


def _time(finding: Finding) -> Tuple[float, str]:
    return finding.when, finding.id


# Asks the rules about a large run in two processes, each of which takes the next rule that nobody has asked.
#
# The second process is a fork: what an answer has of the run itself, such as the failures that it explains, is sent by its address.

_LEAST, _MOST = 1 << 12, 1 << 15  # Processes: fewer are asked about faster than a child is started, and more fill the memory twice.


def asked_of_all(modules: Sequence[Any], run: Run, ask: Callable[[Any], List[Any]], cores: int) -> List[Any]:
    """Return what the rules answer, in their order; on one core if `cores` is 1."""
    if (cores or on_cores.available()) < 2 or not _LEAST <= len(run.processes) <= _MOST:
        return [answer for module in modules for answer in ask(module)]
    post = _Post(run)
    asked = on_cores.each(len(modules), 1, lambda number: ask(modules[number]), lambda number: post.packed(ask(modules[number])), post.unpacked)
    return [answer for each in asked for answer in each]


class _Post:
    """Packs answers in the child and unpacks them in its parent."""

    def __init__(self, run: Run) -> None:
        deaths = [process.death for process in run.processes if process.death is not None]
        failures = [failure for one in (run, *run.earlier_generations) for failure in one.failures]
        self._shared: Dict[int, Any] = {id(one): one for one in (*run.deaths, *deaths, *failures)}

    def packed(self, found: List[Any]) -> bytes:
        shared, into = self._shared, io.BytesIO()

        class Pickler(pickle.Pickler):
            def persistent_id(self, one: Any) -> Any:
                if id(one) in shared:
                    return id(one)
                if isinstance(one, (Failed, LoggedProcess, Run)):
                    raise pickle.PicklingError  # It was made by the rule, which is therefore asked in the parent.
                return None

        Pickler(into, pickle.HIGHEST_PROTOCOL).dump(found)
        return into.getvalue()

    def unpacked(self, data: bytes) -> List[Any]:
        shared = self._shared

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, address: Any) -> Any:
                return shared[address]

        found: List[Any] = Unpickler(io.BytesIO(data)).load()
        return found
