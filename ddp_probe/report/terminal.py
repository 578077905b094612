"""The form for a person in a hurry: the verdict, the line, what to change; then the evidence, the ranks, and what was read."""

from typing import Iterator, List, Optional, TextIO

from ddp_probe.diagnose import Diagnosis
from ddp_probe.diagnose.judge import CLEAR, FOUND
from ddp_probe.read.model import Run
from ddp_probe.report import brief, found, inventory, paint, ranks_table, remedies
from ddp_probe.report.layout import StyledLine, item, labelled, more, sentence, wrap
from ddp_probe.report.paint import GOOD, QUIET, STRONG, WARN
from ddp_probe.report.paths import Paths
from ddp_probe.report.rank_state import RankState, rank_states

WIDEST = 110  # Longer lines are hard to read; the table may use the full width.
_REASONS = 8  # Maximum reasons shown.


def show(diagnosis: Diagnosis, stream: Optional[TextIO] = None) -> None:
    """Print the report with the terminal's colours and width, or 80 columns without a terminal."""
    paint.write(lines(diagnosis, paint.width()), stream)


def lines(diagnosis: Diagnosis, width: int = 80) -> List[StyledLine]:
    """Return the report's lines."""
    run, states, narrow, paths = diagnosis.run, rank_states(diagnosis.run), max(40, min(width, WIDEST)), Paths()
    page = list(sentence(inventory.title(run, states), narrow, style=STRONG))
    for finding in diagnosis.findings:
        page += [StyledLine(""), *found.lines(finding, diagnosis, narrow, paths)]
    if diagnosis.verdict == CLEAR:
        page += [StyledLine(""), *sentence(brief.clear(diagnosis), narrow, style=GOOD)]
    page += _undecided(diagnosis, narrow, paths)
    page += _remedies(run, narrow, paths)
    if states:
        guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
        page += [StyledLine(""), *ranks_table.lines(states, guilty, width)]
    return [*page, StyledLine(""), *_inventory(run, states, narrow)]


def _inventory(run: Run, states: List[RankState], width: int) -> Iterator[StyledLine]:
    """Yield what was read: a verdict is only as reliable as the files behind it."""
    for label, text in inventory.rows(run, states):
        yield from labelled(label, text, width)


def _undecided(diagnosis: Diagnosis, width: int, paths: Paths) -> Iterator[StyledLine]:
    if not diagnosis.undecided:
        return
    yield StyledLine("")
    if diagnosis.verdict == FOUND:
        yield StyledLine("still open:", QUIET)
    else:
        yield StyledLine("undecided%s, because" % (" so far" if diagnosis.run.running else ": no rule can name a cause"), WARN)
    for reason in diagnosis.undecided[:_REASONS]:
        yield from item(paths(reason.because), width)
        if reason.next:
            for one in wrap("next: " + paths(reason.next), width, "    ", "    "):
                yield StyledLine(one, GOOD)
    yield from more(len(diagnosis.undecided) - _REASONS)


def _remedies(run: Run, width: int, paths: Paths) -> Iterator[StyledLine]:
    texts = remedies.sentences(run)
    if texts:
        yield StyledLine("")
        yield StyledLine("what DDP_PROBE_FIX did", STRONG)
    for text in texts[:_REASONS]:
        yield from item(paths(text), width)
    yield from more(len(texts) - _REASONS)
