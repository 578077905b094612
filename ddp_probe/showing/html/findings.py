"""The findings of the page: the verdict, the job's line, what to change, the evidence, and what followed from it."""

from itertools import groupby
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import ERROR, HIGH, Evidence, Finding
from ddp_probe.shared.schema import Site
from ddp_probe.showing import found, own_change, source
from ddp_probe.showing.found import EvidenceGroup
from ddp_probe.showing.html.quotes import LineLink, Quotes
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.paths import Paths
from ddp_probe.wording.words import named

_CONTEXT = 2  # Lines of the source around a change.
_LINKS = 6  # Lines of the logs that one claim links to.
_GROUPS = 16  # Claims of one finding.
_CONSEQUENCES = 12

_SiteKey = Optional[Tuple[str, int, str]]


class SourceLine(NamedTuple):
    """A line of the job; in the line that is meant, the call is `meant`."""

    number: int
    own: bool
    before: str
    meant: str
    after: str


class RemedyBlock(NamedTuple):
    """A paragraph of what to change, or lines of code."""

    code: bool
    lines: List[str]


class DiffLine(NamedTuple):
    """A line of a diff; its kind is added, removed, context or place."""

    kind: str
    text: str


class EvidenceClaim(NamedTuple):
    """What lines of the logs show, with links to them."""

    who: str
    text: str
    links: List[LineLink]
    more: int


class SiteClaims(NamedTuple):
    """The claims about one line of the job."""

    site: str
    claims: List[EvidenceClaim]


class FindingPart(NamedTuple):
    """One finding, as the page shows it."""

    id: str
    slug: str
    severity: str
    is_error: bool
    who: str
    verdict: str
    weaker: str
    place: str
    source: List[SourceLine]
    changed: str
    remedy: List[RemedyBlock]
    diff: List[DiffLine]
    shell: List[str]
    fix: str
    restart: str
    evidence: List[SiteClaims]
    evidence_more: int
    consequences: List[str]
    consequences_more: int


def parts(diagnosis: Diagnosis, quotes: Quotes, say: Language = ENGLISH) -> List[FindingPart]:
    """Return the findings in their order."""
    return [_part(finding, diagnosis, quotes, say) for finding in diagnosis.findings]


def _part(finding: Finding, diagnosis: Diagnosis, quotes: Quotes, say: Language) -> FindingPart:
    run, paths = diagnosis.run, Paths(diagnosis.run)
    site = source.own_line(finding)
    there = source.of(site, run) if site is not None else None
    verdict = paths(finding.verdict, say)
    place = _place(site, paths, say) if site is not None and there is not None else ""
    claims, more = _evidence(finding, diagnosis, quotes, paths, say)
    return FindingPart(
        finding.id,
        finding.slug,
        say(finding.severity),
        finding.severity == ERROR,
        say.text(named(finding.ranks)) + found.hosts_of(finding, run, say) if finding.ranks else "",
        verdict,
        found.weaker(finding, diagnosis, say) if finding.confidence != HIGH else "",
        place,
        [_source_line(row) for row in source.rows(site, there)] if site is not None and there is not None else [],
        source.changed(there, say) if there is not None and there.newer else "",
        list(blocks(paths(finding.remedy, say))),
        _diff(finding) if there is None or not there.newer else [],
        own_change.shell(finding) if there is None or not there.newer else [],
        finding.fix,
        paths(found.restart(finding, diagnosis) or "", say),
        claims,
        more,
        [paths(text, say) for text in finding.consequences[:_CONSEQUENCES]],
        max(0, len(finding.consequences) - _CONSEQUENCES),
    )


def _place(site: Site, paths: Paths, say: Language) -> str:
    return "%s:%d%s" % (paths.name(site.file), site.line, say(" in %s") % site.function if site.function else "")


def _source_line(row: source.SourceRow) -> SourceLine:
    """Split the line at its carets; if characters are not as wide as columns, the whole line is meant."""
    if not row.carets:
        return SourceLine(row.number, False, row.text, "", "")
    if not row.text.isascii():
        return SourceLine(row.number, True, "", row.text, "")
    begin, end = len(row.carets) - len(row.carets.lstrip()), len(row.carets)
    return SourceLine(row.number, True, row.text[:begin], row.text[begin:end], row.text[end:])


def blocks(text: str) -> Iterator[RemedyBlock]:
    """Yield the lines of a rule's text, each a paragraph; consecutive indented lines are code."""
    for code, lines in groupby(text.split("\n"), key=lambda line: line.startswith("  ")):
        kept = [line.expandtabs(4) for line in lines if line.strip()]
        yield from [RemedyBlock(True, kept)] if code else [RemedyBlock(False, [line]) for line in kept]


def _diff(finding: Finding) -> List[DiffLine]:
    lines = [line.expandtabs(4) for line in own_change.diff(finding, _CONTEXT)]
    while lines and not lines[-1].strip():
        lines.pop()
    return [DiffLine(_kind(line), line) for line in lines]


def _kind(line: str) -> str:
    if line.startswith(("--- ", "+++ ", "@@")):
        return "place"
    return "removed" if line.startswith("-") else "added" if line.startswith("+") else "context"


def _evidence(finding: Finding, diagnosis: Diagnosis, quotes: Quotes, paths: Paths, say: Language) -> Tuple[List[SiteClaims], int]:
    """Return the claims by the line of the job that they are about, and how many are left out."""
    sites: Dict[_SiteKey, List[Evidence]] = {}
    for evidence in finding.evidence:
        sites.setdefault((evidence.site.file, evidence.site.line, evidence.site.function) if evidence.site else None, []).append(evidence)
    claims: List[SiteClaims] = []
    left = _GROUPS
    line = source.own_line(finding)
    framed = (line.file, line.line) if line is not None else None
    for site, items in sorted(sites.items(), key=lambda pair: pair[0] is None or pair[0][:2] != framed):
        groups = found.grouped(items, diagnosis.run)
        shown = [_claim(group, quotes, paths, say) for group in groups[: max(left, 0)]]
        claims += [SiteClaims(_place(Site(*site), paths, say) if site is not None else "", shown)] if shown else []
        left -= len(groups)
    return claims, max(0, -left)


def _claim(group: EvidenceGroup, quotes: Quotes, paths: Paths, say: Language) -> EvidenceClaim:
    links = [quotes.link(at) for at in group.at[:_LINKS]]
    return EvidenceClaim(say.text(named(group.ranks)) if group.ranks else "", group.says(say, paths.show), links, max(0, len(group.at) - _LINKS))
