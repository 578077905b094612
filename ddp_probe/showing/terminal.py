"""The form for a person in a hurry: the verdict, the line, what to change; then the evidence, the ranks, and what was read."""

import functools
import os
import sys
from typing import Iterator, List, Optional, TextIO

from ddp_probe.judging import site_rule_draft
from ddp_probe.judging.judge import CLEAR, FOUND, Diagnosis
from ddp_probe.judging.rule import ERROR
from ddp_probe.reading.model import Run
from ddp_probe.showing import (
    brief_form,
    event_line,
    found,
    inventory,
    language,
    pager,
    paint,
    ranks_table,
    remedies,
    safe,
    source,
)
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import GLUE, StyledLine, item, labelled, more, paragraph, sentence, wrap
from ddp_probe.showing.paint import BAD, GOOD, QUIET, STRONG, WARN
from ddp_probe.showing.paths import Paths
from ddp_probe.showing.rank_state import RankState, last_files, rank_states
from ddp_probe.wording.words import named

WIDEST = 110  # Longer lines are hard to read; the table may use the full width.
_REASONS = 8  # Maximum reasons shown.


def show(diagnosis: Diagnosis, stream: Optional[TextIO] = None) -> None:
    """Print the report with the terminal's colours, links and width, or 80 columns without a terminal."""
    paint.write(_page(diagnosis, stream or sys.stdout), stream)


def show_paged(diagnosis: Diagnosis) -> None:
    """Print the report, through a pager if it is longer than the terminal."""
    pager.write(_page(diagnosis, sys.stdout))


def show_sum(diagnosis: Diagnosis) -> None:
    """Print the last line of the report alone."""
    paint.write([last_line(diagnosis, paint.width(), language.chosen(sys.stdout))])


def _page(diagnosis: Diagnosis, stream: TextIO) -> List[StyledLine]:
    paths, say = Paths(diagnosis.run, GLUE), language.chosen(stream)
    page = lines(diagnosis, paint.width(), paths, say=say)
    if stream.isatty() and pager.is_longer(page):  # Else the verdict is on the screen.
        page += [StyledLine(""), last_line(diagnosis, paint.width(), say)]
    return list(_linked(page, diagnosis.run, paths)) if paint.links(stream) else page


def last_line(diagnosis: Diagnosis, width: int, say: Language = ENGLISH) -> StyledLine:
    """Return the report in one line, cut to the width: the rule, the ranks, the place and what to change."""
    if diagnosis.verdict == CLEAR:
        return StyledLine(event_line.cut(_clear(diagnosis, say), width), GOOD)
    if not diagnosis.findings:
        reason = diagnosis.undecided[0].because if diagnosis.undecided else ""
        text = say("undecided") + say(": ") + say.text(reason)
        return StyledLine(event_line.cut(safe.line(text), width), WARN)
    finding = diagnosis.findings[0]
    site = source.own_line(finding)
    place = "%s:%d" % (os.path.basename(site.file), site.line) if site is not None else ""
    who = say.text(named(finding.ranks)) if finding.ranks else ""
    more = say("and %d more") % (len(diagnosis.findings) - 1) if len(diagnosis.findings) > 1 else ""
    change = Paths(diagnosis.run)(finding.remedy, say)
    parts = ["%s %s" % (finding.id, finding.slug), who, more, place, change]
    text = safe.line("  ".join(part for part in parts if part))
    return StyledLine(event_line.cut(text, width), WARN if finding.severity != ERROR else BAD)


def lines(diagnosis: Diagnosis, width: int = 80, paths: Optional[Paths] = None, say: Language = ENGLISH) -> List[StyledLine]:
    """Return the report's lines."""
    run, states, narrow = diagnosis.run, rank_states(diagnosis.run), max(40, min(width, WIDEST))
    paths = Paths(run, GLUE) if paths is None else paths
    page = list(sentence(inventory.title(run, states, say), narrow, style=STRONG))
    for finding in diagnosis.findings:
        page += [StyledLine(""), *found.lines(finding, diagnosis, narrow, paths, say)]
    if diagnosis.verdict == CLEAR:
        page += [StyledLine(""), *sentence(_clear(diagnosis, say), narrow, style=GOOD)]
    page += _undecided(diagnosis, narrow, paths, say)
    page += _draft(diagnosis, narrow, paths, say)
    page += _remedies(run, narrow, paths, say)
    if states:
        guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
        page += [StyledLine(""), *ranks_table.lines(states, guilty, width, say)]
    return [*page, StyledLine(""), *_inventory(run, states, narrow, say)]


def _clear(diagnosis: Diagnosis, say: Language) -> str:
    return say(brief_form.GOOD_ORDER) % say.text(named(sorted(diagnosis.run.ranks)))


def _linked(page: List[StyledLine], run: Run, paths: Paths) -> Iterator[StyledLine]:
    """Yield the lines with links; the table of ranks has only the names of files, which may be ambiguous."""
    for file in last_files(run):
        paths.places.add(os.path.basename(file), file)
    return paths.places.linked(page)


def _inventory(run: Run, states: List[RankState], width: int, say: Language) -> Iterator[StyledLine]:
    """Yield what was read: a verdict is only as reliable as the files behind it."""
    spaced = inventory.spaced(run)
    for label, text in inventory.rows(run, states, say):
        yield from labelled(say(label), functools.reduce(lambda glued, path: glued.replace(path, path.replace(" ", GLUE)), spaced, text), width)


def _undecided(diagnosis: Diagnosis, width: int, paths: Paths, say: Language) -> Iterator[StyledLine]:
    if not diagnosis.undecided:
        return
    yield StyledLine("")
    if diagnosis.verdict == FOUND:
        yield StyledLine(say("still open:"), QUIET)
    else:
        final = say("undecided: no rule can name a cause, because")
        yield StyledLine(say("undecided so far, because") if diagnosis.run.running else final, WARN)
    for reason in diagnosis.undecided[:_REASONS]:
        yield from item(paths(reason.because, say), width)
        if reason.next:
            for line in wrap(say("next: %s") % paths(reason.next, say), width, "    ", "    "):
                yield StyledLine(line, GOOD)
    yield from more(len(diagnosis.undecided) - _REASONS, say)


def _draft(diagnosis: Diagnosis, width: int, paths: Paths, say: Language) -> Iterator[StyledLine]:
    """Yield how a site makes a rule of a failure that it knows, if none answers a plain log."""
    failure = site_rule_draft.unanswered(diagnosis)
    if failure is not None:
        yield StyledLine("")
        yield from paragraph(paths(site_rule_draft.offer(failure), say), width)


def _remedies(run: Run, width: int, paths: Paths, say: Language) -> Iterator[StyledLine]:
    texts = remedies.sentences(run)
    if texts:
        yield StyledLine("")
        yield StyledLine(say("what DDP_PROBE_FIX did"), STRONG)
    for text in texts[:_REASONS]:
        yield from item(paths(text, say), width)
    yield from more(len(texts) - _REASONS, say)
