"""The job's line as a code frame with a caret, if its source is available, and whether it has changed since the run."""

import ast
import os
import textwrap
from collections import Counter
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.rule import Finding
from ddp_probe.reading import job_source
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing import safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine
from ddp_probe.showing.paint import BAD, QUIET, STRONG, WARN
from ddp_probe.wording.words import clock

_AROUND = 2  # Lines before and after.
_LONGEST = 160  # Characters of one line.
_CARETS = 70  # Maximum columns of carets: more would wrap in a terminal.


class Source(NamedTuple):
    """A file of the job, in its current state."""

    lines: List[str]
    newer: float  # Time of its last change if after the run began, else 0.


def own_line(finding: Finding) -> Optional[Site]:
    """Return the line of the job that most of the evidence refers to; the first of several."""
    sites = [evidence.site for evidence in finding.evidence if evidence.site is not None]
    counts = Counter((site.file, site.line) for site in sites)
    return max(sites, key=lambda site: counts[site.file, site.line], default=None)


def of(site: Site, run: Run) -> Optional[Source]:
    """Return the source of a site; None if the file is not available or has no such line."""
    path = absolute(site.file, run)
    job_file = job_source.read(path) if path.endswith(".py") else None
    lines = job_file.text.splitlines() if job_file is not None else []
    if job_file is None or not 0 < site.line <= len(lines):
        return None
    began = _began(run)
    return Source(lines, job_file.changed if began and job_file.changed > began else 0.0)


class SourceRow(NamedTuple):
    """One line of a frame; of the line that is meant, carets for below the call in it."""

    number: int
    text: str
    carets: str


def frame(site: Site, source: Source, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the line with its neighbours, and carets below the call in it."""
    shown = rows(site, source)
    digits = len(str(shown[-1].number))
    for number, text, carets in shown:
        own = bool(carets)
        yield StyledLine(("  %s %*d | %s" % (">" if own else " ", digits, number, text)).rstrip(), STRONG if own else QUIET)
        if own:
            yield StyledLine("    %s | %s" % (" " * digits, carets), BAD)
    if source.newer:
        yield StyledLine("    " + changed(source, say), WARN)


def rows(site: Site, source: Source) -> List[SourceRow]:
    """Return the line with its neighbours."""
    call = _call(source.lines, site.line)
    first, last = max(1, site.line - _AROUND), min(len(source.lines), max(site.line + _AROUND - 1, min(_end(call, site.line), site.line + 6)))
    shown = textwrap.dedent("\n".join(line.expandtabs(4) for line in source.lines[first - 1 : last])).split("\n")
    return [
        SourceRow(number, safe.visible(text)[:_LONGEST], _carets(text, source.lines[number - 1], call) if number == site.line else "")
        for number, text in enumerate(shown, first)
    ]


def newer(files: Sequence[str], run: Run, say: Language = ENGLISH) -> Optional[Tuple[str, str]]:
    """Return the first of these files that has changed since the run began, and when; None if none has."""
    began = _began(run)
    for file in files if began else ():
        job_file = job_source.read(absolute(file, run))
        if job_file is not None and job_file.changed > began:
            return os.path.basename(file), say.text(clock(job_file.changed))
    return None


def changed(source: Source, say: Language = ENGLISH) -> str:
    """Say that the file is newer than the run."""
    return say("changed at %s, after the run began: the line may have moved") % say.text(clock(source.newer))


def absolute(path: str, run: Run) -> str:
    """Return the path of a file of the job, which a frame may have as a relative one."""
    return os.path.join(job_source.working_folder(run), path)


def _began(run: Run) -> float:
    """Return when the run began; for a plain log only its last change is known."""
    times = [process.start_when for process in (*run.processes, *run.launchers) if process.start_when > 0]
    if times:
        return min(times)
    try:
        return max((os.stat(log.file).st_mtime for log in run.texts), default=0.0)
    except OSError:
        return 0.0


def _call(lines: List[str], number: int) -> Optional[ast.Call]:
    """Return the outermost call that begins on the line, or None."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == number]
    return max(calls, key=_size, default=None)


def _size(call: ast.Call) -> Tuple[int, int]:
    return (call.end_lineno or call.lineno) - call.lineno, (call.end_col_offset or 0) - call.col_offset


def _end(call: Optional[ast.Call], number: int) -> int:
    return number if call is None or call.end_lineno is None else call.end_lineno


def _carets(shown: str, line: str, call: Optional[ast.Call]) -> str:
    """Return carets below the call, or below the whole line; ast counts columns in bytes."""
    left, right = len(line) - len(line.lstrip()), len(line.rstrip())
    if call is not None:
        data = line.encode("utf-8")
        left = len(data[: call.col_offset].decode("utf-8", "replace"))
        if call.end_lineno == call.lineno:
            right = len(data[: call.end_col_offset].decode("utf-8", "replace"))
    cut = len(line.expandtabs(4)) - len(shown)  # The indentation removed by dedent.
    start = safe.width(line[:left].expandtabs(4)) - cut
    return " " * start + "^" * max(1, min(safe.width(line[left:right]), _CARETS - start))
