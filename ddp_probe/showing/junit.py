"""The form for test reports, as GitLab and Jenkins read them: JUnit's XML, with a test for the verdict, for each finding and for each open question.

It follows junit-10.xsd of Jenkins' xUnit plugin, which refuses a file with any other attribute; so the line of the job is in the text, which
GitLab shows, and not in attributes. The text is ASCII, with character references, whatever the locale's encoding is.
"""

import sys
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Tuple
from xml.etree import ElementTree

import ddp_probe
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import ERROR as SERIOUS
from ddp_probe.judging.rule import Finding
from ddp_probe.reading import bundled
from ddp_probe.reading.model import Run
from ddp_probe.showing import brief_form, found, inventory, safe
from ddp_probe.showing.brief_form import questions
from ddp_probe.showing.paths import Paths
from ddp_probe.wording.words import named

SUITE = "ddp_probe"
_WIDTH = 100
_LONGEST = 500  # Characters of a message; the text has all of it.
FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
_OF_CODE = {0: "", 1: FAILURE, 3: ERROR}


class Case(NamedTuple):
    """One test: its class and name, and what is wrong; outcome is empty if it has passed."""

    classname: str
    name: str
    outcome: str = ""
    type: str = ""
    message: str = ""
    text: str = ""


def show(diagnosis: Diagnosis) -> None:
    """Print the document."""
    sys.stdout.write(text(diagnosis))


def text(diagnosis: Diagnosis) -> str:
    """Return the document."""
    suite = ElementTree.Element("testsuite", {"name": SUITE})
    cases = list(_distinct(_cases(diagnosis)))
    suite.attrib.update(tests=str(len(cases)), **_counts(cases))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(diagnosis.run):
        ElementTree.SubElement(properties, "property", {"name": name, "value": safe.line(value, _LONGEST)})
    for case in cases:
        _add(suite, case)
    for element in (suite, properties):
        _on_lines_of_their_own(element)
    return '<?xml version="1.0" encoding="UTF-8"?>\n%s\n' % ElementTree.tostring(suite, encoding="us-ascii").decode("ascii")


def _cases(diagnosis: Diagnosis) -> Iterator[Case]:
    yield _verdict(diagnosis)
    paths = Paths(diagnosis.run)
    for finding in diagnosis.findings:
        yield _of_finding(finding, diagnosis, paths)
    outcome = SKIPPED if diagnosis.exit_code() == 1 else ERROR
    for reason in questions(diagnosis):
        parts = [safe.line(reason.because), *(["next: " + safe.line(reason.next)] if reason.next else [])]
        yield Case("%s.%s" % (SUITE, reason.slug), "undecided", outcome, "undecided", safe.line(reason.because, _LONGEST), "\n".join(parts))


def _verdict(diagnosis: Diagnosis) -> Case:
    """Return the test that every run has: it passes if there is nothing worse than a warning."""
    lines, outcome = brief_form.lines(diagnosis), _OF_CODE[diagnosis.exit_code()]
    return Case(SUITE, "verdict", outcome, diagnosis.verdict, lines[0], "\n".join(lines)) if outcome else Case(SUITE, "verdict")


def _of_finding(finding: Finding, diagnosis: Diagnosis, paths: Paths) -> Case:
    """Return a finding; its text is what the report prints for a person."""
    who = " on %s" % named(finding.ranks) if finding.ranks else ""
    lines = "\n".join(safe.line(line.text) for line in found.lines(finding, diagnosis, _WIDTH, paths))
    outcome = FAILURE if finding.severity == SERIOUS else SKIPPED
    return Case("%s.%s" % (SUITE, finding.slug), finding.id + who, outcome, finding.cause, safe.line(finding.verdict, _LONGEST), lines)


def _distinct(cases: Iterator[Case]) -> Iterator[Case]:
    """Number the tests that have one class and name: GitLab keeps the last one of them."""
    seen: Counter[Tuple[str, str]] = Counter()
    for case in cases:
        key = (case.classname, case.name)
        seen[key] += 1
        yield case if seen[key] == 1 else case._replace(name="%s (%d)" % (case.name, seen[key]))


def _counts(cases: List[Case]) -> Dict[str, str]:
    counts = Counter(case.outcome for case in cases)
    return {"failures": str(counts[FAILURE]), "errors": str(counts[ERROR]), "skipped": str(counts[SKIPPED])}


def _properties(run: Run) -> Iterator[Tuple[str, str]]:
    yield "run", run.name or "without a name"
    yield "folders", " ".join(map(bundled.shown, run.folders))
    yield "launcher", inventory.launcher(run)
    yield "ranks", str(run.expected or len(run.processes))
    yield "hosts", " ".join(sorted({process.host for process in (*run.launchers, *run.processes) if process.host}))
    yield "ddp_probe", ddp_probe.__version__


def _add(suite: ElementTree.Element, case: Case) -> None:
    element = ElementTree.SubElement(suite, "testcase", {"classname": case.classname, "name": safe.line(case.name)})
    if case.outcome:
        outcome = ElementTree.SubElement(element, case.outcome, {"type": case.type, "message": case.message})
        outcome.text = case.text


def _on_lines_of_their_own(element: ElementTree.Element) -> None:
    element.text = "\n"
    for child in element:
        child.tail = "\n"
