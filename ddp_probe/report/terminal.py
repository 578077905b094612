"""The form for a person: what there was to read, the verdict, its evidence, what to change, and the table of ranks."""

from typing import Dict, Iterator, List, Optional, TextIO, Tuple

from ddp_probe.diagnose import Diagnosis, Evidence, Finding
from ddp_probe.diagnose.judge import CLEAR, FOUND
from ddp_probe.diagnose.rule import ERROR, HIGH
from ddp_probe.diagnose.rules import modules, rule_of
from ddp_probe.diagnose.words import named
from ddp_probe.read.model import Run
from ddp_probe.report import brief, inventory, own_change, paint, ranks, ranks_table, remedies
from ddp_probe.report.layout import Line, labelled, paragraph, sentence, wrap
from ddp_probe.report.paint import BAD, GOOD, QUIET, STRONG, WARN
from ddp_probe.report.standing import standings
from ddp_probe.schema import Site

WIDEST = 110  # Longer lines are hard to read; the table takes what there is.
_EVIDENCE, _CONSEQUENCES, _REASONS = 8, 6, 8  # So many are shown.


def show(diagnosis: Diagnosis, stream: Optional[TextIO] = None) -> None:
    """Print the report; colours and width are those of the terminal, and of 80 columns where there is none."""
    paint.write(lines(diagnosis, paint.width()), stream)


def lines(diagnosis: Diagnosis, width: int = 80) -> List[Line]:
    """Return the report's lines."""
    run, stand, narrow = diagnosis.run, standings(diagnosis.run), max(40, min(width, WIDEST))
    page = list(sentence(inventory.title(run, stand), narrow, style=STRONG))
    for label, text in inventory.rows(run, stand):
        page += labelled(label, text, narrow)
    for finding in diagnosis.findings:
        page += [Line(""), *_finding(finding, diagnosis, narrow)]
    if diagnosis.verdict == CLEAR:
        page += [Line(""), *sentence(brief.clear(diagnosis), narrow, style=GOOD)]
    page += _undecided(diagnosis, narrow)
    page += _remedies(run, narrow)
    if stand:
        guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
        page += [Line(""), *ranks_table.lines(stand, guilty, width)]
    return page


def _finding(finding: Finding, diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    warning = "" if finding.severity == ERROR else "  %s" % finding.severity
    who = "  %s%s" % (named(finding.ranks), _hosts(finding, diagnosis.run)) if finding.ranks else ""
    yield from sentence("%s %s%s%s" % (finding.id, finding.slug, who, warning), width, style=WARN if warning else BAD)
    yield from sentence(finding.verdict, width)
    if finding.confidence != HIGH:
        yield from sentence(_weaker(finding, diagnosis), width, style=QUIET)
    yield Line("")
    yield Line("  evidence", STRONG)
    yield from _evidence(finding.evidence, diagnosis, width)
    yield Line("  change", STRONG)
    yield from paragraph(finding.remedy, width, 4)
    if finding.fix:
        yield from paragraph("Or, for one run without editing: DDP_PROBE_FIX=%s" % finding.fix, width, 4)
    if finding.consequences:
        yield Line("  what followed from it", STRONG)
        for text in finding.consequences[:_CONSEQUENCES]:
            yield from _item(text, width)
        yield from _more(len(finding.consequences) - _CONSEQUENCES)
    run = " %s" % inventory.near(diagnosis.run.folders[0]) if diagnosis.run.folders and own_change.diff(finding) else ""
    yield Line("  more%s: python -m ddp_probe explain %s%s" % (", and a diff of your own call" if run else "", finding.id, run), QUIET)


def _hosts(finding: Finding, run: Run) -> str:
    """Name the hosts of the guilty ranks, where there are others."""
    of = {process.host for process in run.processes}
    own = [process.host for process in run.processes if process.rank in finding.ranks]
    return " on %s" % ranks.hosts(own) if len(of) > 1 and any(own) else ""


def _weaker(finding: Finding, diagnosis: Diagnosis) -> str:
    texts = {log.file for log in diagnosis.run.texts}
    if not all(item.file in texts for item in finding.evidence):
        return "Confidence: %s." % finding.confidence
    needs = next((rule.needs for rule in map(rule_of, modules()) if rule.slug == finding.slug), ())
    told = "Told from the printed text alone, which is weaker evidence."
    return told + (" A run with DDP_PROBE=1 would add %s." % ", ".join(needs) if needs else "")


def _evidence(evidence: List[Evidence], diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    """Tell each line of the job once, and under it the lines of the log that speak of it."""
    groups: Dict[Optional[Tuple[str, int, str]], List[Evidence]] = {}
    for item in evidence[:_EVIDENCE]:
        groups.setdefault(_place(item.site), []).append(item)
    for place, items in groups.items():
        if place is not None:
            where = "%s:%d" % (inventory.near(place[0]), place[1])
            yield from sentence("at " + where + (" in %s" % place[2] if place[2] else ""), width, 4, STRONG)
        for text, logs in _alike(items, diagnosis.run).items():
            yield from _logs(text, logs, width, 6 if place else 4)
    yield from _more(len(evidence) - _EVIDENCE)


def _alike(items: List[Evidence], run: Run) -> Dict[str, List[str]]:
    """Return what is shown, to the lines of the logs that show it: what ranks have in common is told once."""
    found: Dict[str, List[str]] = {}
    for item in items:
        found.setdefault(item.text, []).append("%s:%d" % (inventory.near(item.file, run), item.line))
    return found


def _logs(text: str, logs: List[str], width: int, indent: int) -> Iterator[Line]:
    if len(logs) == 1:
        for one in wrap("%s  %s" % (logs[0], text), width, " " * indent, " " * (indent + 2)):
            yield Line(one)
        return
    yield from sentence(", ".join(logs), width, indent)
    yield from sentence(text, width, indent + 2)


def _place(site: Optional[Site]) -> Optional[Tuple[str, int, str]]:
    return (site.file, site.line, site.function) if site is not None else None


def _undecided(diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    if not diagnosis.undecided:
        return
    yield Line("")
    if diagnosis.verdict == FOUND:
        yield Line("still open:", QUIET)
    else:
        yield Line("undecided%s, because" % (" so far" if diagnosis.run.running else ": no rule can name a cause"), WARN)
    for reason in diagnosis.undecided[:_REASONS]:
        yield from _item(reason.because, width)
        for one in wrap("next: %s" % reason.next, width, "    ", "      ") if reason.next else ():
            yield Line(one)
    yield from _more(len(diagnosis.undecided) - _REASONS)


def _remedies(run: Run, width: int) -> Iterator[Line]:
    told = remedies.told(run)
    if told:
        yield Line("")
        yield Line("what DDP_PROBE_FIX did", STRONG)
    for text in told[:_REASONS]:
        yield from _item(text, width)
    yield from _more(len(told) - _REASONS)


def _item(text: str, width: int) -> Iterator[Line]:
    for one in wrap(text, width, "  - ", "    "):
        yield Line(one)


def _more(count: int) -> Iterator[Line]:
    if count > 0:
        yield Line("    ... and %d more; --json has them all" % count, QUIET)
