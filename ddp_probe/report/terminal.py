"""The form for a person who has thirty seconds: the verdict, the line, what to change; then the evidence, the ranks, and what there was to read."""

from typing import Iterator, List, Optional, TextIO

from ddp_probe.diagnose import Diagnosis
from ddp_probe.diagnose.judge import CLEAR, FOUND
from ddp_probe.read.model import Run
from ddp_probe.report import brief, found, inventory, paint, ranks_table, remedies
from ddp_probe.report.layout import Line, item, labelled, more, sentence, wrap
from ddp_probe.report.paint import GOOD, QUIET, STRONG, WARN
from ddp_probe.report.paths import Paths
from ddp_probe.report.standing import Standing, standings

WIDEST = 110  # Longer lines are hard to read; the table takes what there is.
_REASONS = 8  # So many are shown.


def show(diagnosis: Diagnosis, stream: Optional[TextIO] = None) -> None:
    """Print the report; colours and width are those of the terminal, and of 80 columns if there is none."""
    paint.write(lines(diagnosis, paint.width()), stream)


def lines(diagnosis: Diagnosis, width: int = 80) -> List[Line]:
    """Return the report's lines."""
    run, stand, narrow, paths = diagnosis.run, standings(diagnosis.run), max(40, min(width, WIDEST)), Paths()
    page = list(sentence(inventory.title(run, stand), narrow, style=STRONG))
    for finding in diagnosis.findings:
        page += [Line(""), *found.lines(finding, diagnosis, narrow, paths)]
    if diagnosis.verdict == CLEAR:
        page += [Line(""), *sentence(brief.clear(diagnosis), narrow, style=GOOD)]
    page += _undecided(diagnosis, narrow, paths)
    page += _remedies(run, narrow, paths)
    if stand:
        guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
        page += [Line(""), *ranks_table.lines(stand, guilty, width)]
    return [*page, Line(""), *_inventory(run, stand, narrow)]


def _inventory(run: Run, stand: List[Standing], width: int) -> Iterator[Line]:
    """A verdict is worth as much as the files behind it."""
    for label, text in inventory.rows(run, stand):
        yield from labelled(label, text, width)


def _undecided(diagnosis: Diagnosis, width: int, paths: Paths) -> Iterator[Line]:
    if not diagnosis.undecided:
        return
    yield Line("")
    if diagnosis.verdict == FOUND:
        yield Line("still open:", QUIET)
    else:
        yield Line("undecided%s, because" % (" so far" if diagnosis.run.running else ": no rule can name a cause"), WARN)
    for reason in diagnosis.undecided[:_REASONS]:
        yield from item(paths(reason.because), width)
        if reason.next:
            for one in wrap("next: " + paths(reason.next), width, "    ", "    "):
                yield Line(one, GOOD)
    yield from more(len(diagnosis.undecided) - _REASONS)


def _remedies(run: Run, width: int, paths: Paths) -> Iterator[Line]:
    told = remedies.told(run)
    if told:
        yield Line("")
        yield Line("what DDP_PROBE_FIX did", STRONG)
    for text in told[:_REASONS]:
        yield from item(paths(text), width)
    yield from more(len(told) - _REASONS)
