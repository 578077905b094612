"""The form for a person in a hurry: the verdict, the line, what to change; then the evidence, the ranks, and what was read."""

import functools
import os
import sys
from typing import Iterator, List, Optional, TextIO

from ddp_probe.judging import site_rule_draft
from ddp_probe.judging.judge import CLEAR, FOUND, Diagnosis
from ddp_probe.reading.model import Run
from ddp_probe.showing import brief_form, found, inventory, language, paint, ranks_table, remedies
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import GLUE, StyledLine, item, labelled, more, paragraph, sentence, wrap
from ddp_probe.showing.paint import GOOD, QUIET, STRONG, WARN
from ddp_probe.showing.paths import Paths
from ddp_probe.showing.rank_state import RankState, last_files, rank_states
from ddp_probe.wording.words import named

WIDEST = 110  # Longer lines are hard to read; the table may use the full width.
_REASONS = 8  # Maximum reasons shown.


def show(diagnosis: Diagnosis, stream: Optional[TextIO] = None) -> None:
    """Print the report in the reader's language, with the terminal's colours, links and width, or 80 columns without a terminal."""
    paths = Paths(diagnosis.run, GLUE)
    page = lines(diagnosis, paint.width(), paths, say=language.chosen(stream or sys.stdout))
    paint.write(_linked(page, diagnosis.run, paths) if paint.links(stream or sys.stdout) else page, stream)


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
