"""The form for GitHub Actions: workflow commands, which GitHub shows as annotations, at the line of the job if it lies in the checkout.

The runner takes each line that begins with two colons as a command, so no line break from a log may reach it. It shows ten annotations of each level
for a step, and at most 4096 characters of one (_maxCountPerIssueType and _maxIssueMessageLength in actions/runner).
"""

import os
import sys
from typing import Iterator, List, NamedTuple, Sequence

from ddp_probe.judging.judge import CLEAR, FOUND, Diagnosis
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Undecided
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing import brief_form, found, safe, source
from ddp_probe.showing.brief_form import questions
from ddp_probe.showing.github_summary import append_summary
from ddp_probe.wording.words import named

SHOWN = 10  # Annotations of one level that GitHub shows for a step.
_LONGEST = 1200  # Characters of the verdict, and of the change, so that GitHub shows both.
_PATH = 300  # Characters of a path in a message.
_NOTICE = "notice"


class Annotation(NamedTuple):
    """One annotation. Without a file it belongs to the step alone."""

    level: str
    title: str
    message: str
    file: str = ""
    line: int = 0


def show(diagnosis: Diagnosis) -> None:
    """Print the commands, and append the report to the summary of the step."""
    sys.stdout.write("".join(line + "\n" for line in lines(diagnosis)))
    sys.stdout.flush()
    append_summary(diagnosis)


def lines(diagnosis: Diagnosis) -> List[str]:
    """Return the commands, one a line."""
    annotations = list(_annotations(diagnosis))
    return [
        _command(annotation)
        for level in (ERROR, WARNING, _NOTICE)
        for annotation in _bounded([annotation for annotation in annotations if annotation.level == level])
    ]


def _annotations(diagnosis: Diagnosis) -> Iterator[Annotation]:
    for finding in diagnosis.findings:
        yield _of_finding(finding, diagnosis)
    if diagnosis.verdict == CLEAR:
        yield Annotation(_NOTICE, "ddp_probe", brief_form.clear(diagnosis))
    for reason in questions(diagnosis):
        yield _asked(reason, _NOTICE if diagnosis.verdict == FOUND else WARNING)


def _of_finding(finding: Finding, diagnosis: Diagnosis) -> Annotation:
    """Return a finding: its verdict, its line, the change, and whether a restart helps."""
    restart = found.restart(finding, diagnosis)
    title = "%s %s%s" % (finding.id, finding.slug, ", %s" % named(finding.ranks) if finding.ranks else "")
    site = source.own_line(finding)
    parts = [safe.line(finding.verdict, _LONGEST)]
    parts += ["At %s:%d." % (safe.line(site.file, _PATH), site.line)] if site is not None else []
    parts += ["What to change:", *(safe.line(line, _LONGEST) for line in _first(finding.remedy.split("\n")))]
    parts += ["Or, for one run without editing: DDP_PROBE_FIX=%s" % finding.fix] if finding.fix else []
    parts += [safe.line(restart, _LONGEST)] if restart else []
    parts += ["More: python -m ddp_probe explain %s" % finding.page]
    path = _in_checkout(site, diagnosis.run) if site is not None else ""
    return Annotation(finding.severity, title, "\n".join(parts), path, site.line if site is not None and path else 0)


def _asked(reason: Undecided, level: str) -> Annotation:
    parts = [safe.line(reason.because, _LONGEST), *(["Next: %s" % safe.line(reason.next, _LONGEST)] if reason.next else [])]
    return Annotation(level, "undecided: %s" % reason.slug, "\n".join(parts))


def _first(lines: Sequence[str]) -> List[str]:
    """Return the first lines, within the length of one part."""
    kept: List[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) > _LONGEST and kept:
            return [*kept, "..."]
        kept.append(line)
    return kept


def _bounded(alike: Sequence[Annotation]) -> Sequence[Annotation]:
    """Return the annotations of one level that GitHub shows; the last of them says how many are left out."""
    left = len(alike) - SHOWN + 1
    if left < 2:
        return alike
    what = "%d more of this level are left out: GitHub shows %d for a step. 'python -m ddp_probe report' prints all." % (left, SHOWN)
    return [*alike[: SHOWN - 1], Annotation(alike[0].level, "ddp_probe", what)]


def _in_checkout(site: Site, run: Run) -> str:
    """Return the path of the line's file in GITHUB_WORKSPACE or in this folder; empty if it lies outside, or if the path is not printable."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    path = source.absolute(site.file, run)
    if not os.path.isabs(path) or safe.line(path) != path:
        return ""
    for plain in (os.path.normpath, os.path.realpath):  # Either of the two may be named through a link.
        inside = os.path.relpath(plain(path), plain(root))
        if inside.split(os.sep)[0] != os.pardir:
            return inside
    return ""


def _command(annotation: Annotation) -> str:
    place = "file=%s,line=%d," % (_property(annotation.file), annotation.line) if annotation.file else ""
    return "::%s %stitle=%s::%s" % (annotation.level, place, _property(safe.line(annotation.title)), _data(annotation.message))


def _data(text: str) -> str:
    """Escape a message as the toolkit of GitHub does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property as the toolkit of GitHub does: a colon or a comma would end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
