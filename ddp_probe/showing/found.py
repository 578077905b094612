"""One finding in the report: the verdict, the job's line, what to change, and the evidence, grouped over the ranks."""

import os
import re
import shlex
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.restart import advice
from ddp_probe.judging.rule import ERROR, HIGH, Evidence, Finding, Rule
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading import bundled, find
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing import inventory, own_change, ranks_table, safe, source
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, item, more, paragraph, sentence
from ddp_probe.showing.paint import ADDED, BAD, GOOD, QUIET, REMOVED, STRONG, WARN
from ddp_probe.showing.paths import Paths
from ddp_probe.wording.text import Text, forms, predicate, templates, words_of_values
from ddp_probe.wording.values import Show, as_it_is, written
from ddp_probe.wording.words import named

_CONSEQUENCES = 6  # Maximum consequences shown.
_GROUPS = 8  # Maximum groups of evidence shown.
_PLACES, _LONGEST = 4, 1000  # Maximum folders of a run, and characters of their names, that a command to copy has.
_NUMBER = re.compile(r"\d+")
_OWN_NUMBERS = ("LOCAL_RANK", "RANK")
"""What stands in place of a number that is the rank's own."""
_SiteKey = Optional[Tuple[str, int, str]]
_Form = Tuple[Tuple[str, ...], Tuple[str, ...]]


def lines(finding: Finding, diagnosis: Diagnosis, width: int, paths: Paths, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the lines of a finding."""
    warning = "" if finding.severity == ERROR else "  %s" % say(finding.severity)
    who = "  %s%s" % (say.text(named(finding.ranks)), hosts_of(finding, diagnosis.run, say)) if finding.ranks else ""
    yield from sentence("%s %s%s%s" % (finding.id, finding.slug, who, warning), width, style=WARN if warning else BAD)
    yield from cause(finding, diagnosis, width, paths, say=say)
    again = restart(finding, diagnosis)
    if again is not None:
        yield from paragraph(paths(again, say), width, 2)
    site = source.own_line(finding)
    shown = (site.file, site.line) if site is not None and source.of(site, diagnosis.run) is not None else None
    if finding.evidence:
        yield StyledLine("  " + say("evidence"), STRONG)
        yield from _evidence(finding, diagnosis.run, width, paths, shown, say)
    if finding.consequences:
        yield StyledLine("  " + say("what followed from it"), STRONG)
        for text in finding.consequences[:_CONSEQUENCES]:
            yield from item(paths(text, say), width)
        yield from more(len(finding.consequences) - _CONSEQUENCES, say)
    yield from _hint(finding, diagnosis.run, width, say)


def _hint(finding: Finding, run: Run, width: int, say: Language) -> Iterator[StyledLine]:
    """Yield the command for the rule's page on this run, ready to be copied: on one line, or with a shell's line continuation."""
    words, bundle = "python -m ddp_probe explain " + finding.page, bundled.current()
    command = "  " + say("more: %s") % words
    places = [_short(place) for place in run.folders or [log.file for log in run.texts]] if bundle is None else [bundle.name]
    names = safe.line(" ".join(map(shlex.quote, places)))
    if not names or len(places) > _PLACES or len(names) > _LONGEST:
        yield StyledLine(command, QUIET)
    elif safe.width(command + " " + names) <= width:
        yield StyledLine(command + " " + names, QUIET)
    else:
        yield from (StyledLine(command + " \\", QUIET), StyledLine("    " + names, QUIET))


def _short(place: str) -> str:
    """Return the name of a run in the folder of all runs, as every command takes it, else the path."""
    folder, name = os.path.split(os.path.abspath(place))
    return name if folder == os.path.abspath(find.root()) else inventory.near(place)


def cause(finding: Finding, diagnosis: Diagnosis, width: int, paths: Paths, context: int = 0, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield what the user needs first: the verdict, the line, and the change.

    What is not in the reader's language stands below the rule's title, and below its remedy.
    """
    rule = _rule(finding)
    if not say.is_english and rule is not None and not say.has(finding.verdict):
        yield from sentence(say.of(rule, "title"), width, style=STRONG)
    yield from sentence(paths(finding.verdict, say), width)
    if finding.confidence != HIGH:
        yield from sentence(weaker(finding, diagnosis, say), width, style=QUIET)
    yield StyledLine("")
    site = source.own_line(finding)
    text = source.of(site, diagnosis.run) if site is not None else None
    if site is not None and text is not None:
        yield StyledLine("  %s" % safe.line(_at(site, paths, say)), STRONG)
        yield from source.frame(site, text, say)
    yield StyledLine("  " + say("change"), GOOD)
    if not say.is_english and rule is not None and not say.has(finding.remedy):
        yield from paragraph(say.of(rule, "remedy"), width, 4, GOOD)
    yield from paragraph(paths(finding.remedy, say), width, 4, GOOD)
    yield from _changes(finding, diagnosis.run, width, context, say)
    if finding.fix:
        yield from paragraph(say("Or, for one run without editing: DDP_PROBE_FIX=%s") % finding.fix, width, 4)


def restart(finding: Finding, diagnosis: Diagnosis) -> Optional[Text]:
    """Return whether a restart helps; nothing if that is open, and for what is not the first error."""
    first = next((each for each in diagnosis.findings if each.severity == ERROR), None)
    answer = advice(diagnosis) if finding is first else None
    return None if answer is None or answer.is_open else answer.because


def _rule(finding: Finding) -> Optional[Rule]:
    return next((rule for rule in map(rule_of, modules()) if rule.slug == finding.slug), None)


def _at(site: Site, paths: Paths, say: Language) -> str:
    return "%s:%d%s" % (paths.name(site.file), site.line, say(" in %s") % site.function if site.function else "")


def _changes(finding: Finding, run: Run, width: int, context: int, say: Language) -> Iterator[StyledLine]:
    """Yield the change of the job's source, unless that has changed; without context, only the removed and added lines."""
    newer = source.newer(own_change.files(finding), run, say)
    if newer:
        yield from sentence(say("No diff: %s changed at %s, after the run began.") % newer, width, 4, WARN)
    for text in own_change.diff(finding, context) if not newer else ():
        style = REMOVED if text.startswith("-") else ADDED if text.startswith("+") else ""
        if context or (style and not text.startswith(("--- ", "+++ "))):
            yield StyledLine("    " + "\t".join(map(safe.line, text.split("\t"))), style)
    yield from (StyledLine("    $ " + safe.line(text), ADDED) for text in own_change.shell(finding))


def hosts_of(finding: Finding, run: Run, say: Language = ENGLISH) -> str:
    """Name the hosts of the guilty ranks if the run has other hosts."""
    of = {process.host for process in run.processes}
    hosts = [process.host for process in run.processes if process.rank in finding.ranks]
    return say(" on %s") % ranks_table.hosts(hosts) if len(of) > 1 and any(hosts) else ""


def weaker(finding: Finding, diagnosis: Diagnosis, say: Language = ENGLISH) -> str:
    """Say why a finding is less than certain."""
    texts = {log.file for log in diagnosis.run.texts}
    if not all(evidence.file in texts for evidence in finding.evidence):
        return say("Confidence: %s.") % say(finding.confidence)
    rule = _rule(finding)
    weaker = say("Based on the printed text alone, which is weaker evidence.")
    return weaker + (say(" A run with DDP_PROBE=1 would add %s.") % ", ".join(rule.needs) if rule is not None and rule.needs else "")


class EvidenceGroup(NamedTuple):
    """What several lines of the logs show in common."""

    text: str
    ranks: List[int]
    at: List[LogLine]

    def says(self, say: Language = ENGLISH, show: Show = as_it_is) -> str:
        """Return the text in the reader's language, without the rank at its beginning if that is what the group names."""
        if isinstance(self.text, Text) and self.ranks:
            return predicate(self.text, self._names(), named(self.ranks), say, show)
        return say.text(self.text, show)

    def _names(self) -> List[str]:
        """Return what may name the ranks of this group."""
        own = [str(self.ranks[0]), str(named(self.ranks))] if len(self.ranks) == 1 else []
        return [*own, *_OWN_NUMBERS, *("rank %s" % name for name in _OWN_NUMBERS)]


def _evidence(finding: Finding, run: Run, width: int, paths: Paths, shown: Optional[Tuple[str, int]], say: Language) -> Iterator[StyledLine]:
    """Yield each line of the job once, unless the frame has shown it, and below it the evidence, once for equal ranks."""
    sites: Dict[_SiteKey, List[Evidence]] = {}
    for evidence in finding.evidence:
        sites.setdefault((evidence.site.file, evidence.site.line, evidence.site.function) if evidence.site else None, []).append(evidence)
    left = _GROUPS
    for site, items in sorted(sites.items(), key=lambda pair: pair[0] is None or pair[0][:2] != shown):  # the line in the frame needs no heading
        groups = grouped(items, run, paths)
        framed = site is not None and site[:2] == shown
        if site is not None and not framed and left > 0:
            yield from sentence(say("at %s") % _at(Site(*site), paths, say), width, 4, STRONG)
        for group in groups[: max(left, 0)]:
            who = "%s  " % say.text(named(group.ranks)) if group.ranks else ""
            indent = 6 if site and not framed else 4
            yield from sentence(who + group.says(say, paths.show), width, indent)
            yield from sentence(_logs(group.at, run, say), width, indent + 2, QUIET)
        left -= len(groups)
    yield from more(-left, say)


def _logs(at: List[LogLine], run: Run, say: Language) -> str:
    return log_line(at[0], run) + (say(" and %d more like it") % (len(at) - 1) if len(at) > 1 else "")


def log_line(at: LogLine, run: Run) -> str:
    """Return a line of a log as the report names it."""
    return "%s:%d" % (inventory.near(at.file, run), at.line)


def grouped(items: Sequence[Evidence], run: Run, paths: Optional[Paths] = None) -> List[EvidenceGroup]:
    """Merge texts that differ only in the rank's number, which is then shown as LOCAL_RANK or RANK."""
    processes = {process.file: process for process in run.processes if process.rank is not None}
    same_form: Dict[_Form, List[Evidence]] = {}
    for evidence in items:
        same_form.setdefault(_form(evidence.text), []).append(evidence)
    groups: List[EvidenceGroup] = []
    for alike in same_form.values():
        for text, those in _folded(alike, processes).items():
            numbers = {processes[evidence.file].rank or 0 for evidence in those if evidence.file in processes}
            if paths is not None:
                paths.log(those[0].file, run)  # The others are not shown.
            places = [LogLine(evidence.file, evidence.line) for evidence in those]
            groups.append(EvidenceGroup(text, sorted(numbers), places))
    return groups


def _form(text: str) -> _Form:
    """Return what texts that differ in numbers alone have in common: their templates, and their values without numbers."""
    return tuple(templates(text)), tuple(_NUMBER.sub("#", words) for words in words_of_values(text))


def _folded(alike: List[Evidence], processes: Dict[str, LoggedProcess]) -> Dict[str, List[Evidence]]:
    """Return each text with its evidence; a single text if they differ only in the rank's number."""
    exact: Dict[str, List[Evidence]] = {}
    for evidence in alike:
        exact.setdefault(evidence.text, []).append(evidence)
    if len(exact) < 2 or not all(evidence.file in processes for evidence in alike):
        return exact
    texts = [evidence.text for evidence in alike]
    words_of: Dict[Tuple[str, ...], str] = {}
    for column in zip(*map(_numbers, texts)):
        words_of[column] = _word(column, alike, processes)
    in_common = None if "" in words_of.values() else _in_common(texts, words_of)
    return exact if in_common is None else {in_common: alike}


def _numbers(text: str) -> List[str]:
    """Return the numbers in the values of a text."""
    numbers: List[str] = []
    for words in words_of_values(text):
        numbers += _NUMBER.findall(words)
    return numbers


def _in_common(values: Sequence[Any], words_of: Dict[Tuple[str, ...], str], form: str = "") -> Any:
    """Return one text, or one value of it, for several that differ only in numbers; None if a number stands in more than one value."""
    first = values[0]
    if isinstance(first, Text) and all(isinstance(value, Text) and value.template == first.template for value in values):
        form_of = forms(first)
        parts = {}
        for name in first.values:
            parts[name] = _in_common([value.values[name] for value in values], words_of, form_of.get(name, ""))
        return None if None in parts.values() else Text(first.template, parts)
    words = [written(value, str, form) for value in values]
    if len(set(words)) == 1:
        return first
    columns = [_NUMBER.findall(text) for text in words]
    if len(set(map(len, columns))) > 1 or not all(column in words_of for column in zip(*columns)):
        return None
    replacements = iter([words_of[column] for column in zip(*columns)])
    return _NUMBER.sub(lambda _: next(replacements), words[0])


def _word(column: Sequence[str], alike: List[Evidence], processes: Dict[str, LoggedProcess]) -> str:
    """Return the number common to all, or LOCAL_RANK or RANK if it is the number of each rank, else an empty string."""
    if len(set(column)) == 1:
        return column[0]
    for word, field in zip(_OWN_NUMBERS, ("local_rank", "rank")):
        if all(number == str(getattr(processes[evidence.file], field)) for number, evidence in zip(column, alike)):
            return word
    return ""
