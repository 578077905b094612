"""Which runs are earlier attempts of a run, and how far each one got.

A launcher that restarts its ranks leaves its attempts in one run. Other attempts are runs of the same command
in DDP_PROBE_DIR that ended before the next one began: within a day, or in one job of the scheduler. A run
that ended well ends the story: what failed before it is another one.
"""

import os
import re
from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.judging import judge
from ddp_probe.judging.facts import fact
from ddp_probe.judging.rule import ERROR, Finding
from ddp_probe.reading import find, glance, log_lines
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.errors import ProbeError
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import say

_MOST = 4  # Attempts that are read.
_LOOKED_AT = 200  # Runs of the folder whose first line is read, the newest ones.
_LARGEST = 64_000_000  # Bytes of one attempt: a report of a large run must not take twice as long.
_APART = 86_400.0  # Seconds from the end of one attempt to the begin of the next.
_LINES = 1e9  # Of a plain log, `when` is the number of a line.
_SKEW = 5.0  # Seconds between the clock of a file system and that of a process.
_DRAWN = re.compile(r"--?(?:master[_-]port|rdzv[_-](?:endpoint|id)|port)(?:=|$)")
"""Arguments that a script draws anew for each attempt."""
_UNFINISHED = re.compile(r"\.(?:tmp|temp|part|partial)$")
"""What the name of a checkpoint ends with until it is renamed."""
_OF_PROBE = re.compile(r"(?:launcher|rank).*[.]jsonl$")
_Key = Tuple[str, Tuple[str, ...], str]


class Attempt(NamedTuple):
    """One start of a job: what ended it, on which hosts it ran, and what it read and wrote of checkpoints."""

    name: str
    run: Run
    finding: Optional[Finding]  # The error; None if the rules name none.
    hosts: List[str]
    guilty_hosts: List[str]
    loaded: List[str]
    saved: List[str]  # Whole, and before the failure; the last is the newest.

    @property
    def steps(self) -> int:
        """Return the most steps that a rank has made since its start; 0 if no ledger tells."""
        return max((_steps(process) for process in self.run.processes), default=0)

    @property
    def site(self) -> Optional[Site]:
        """Return the line of the job at which it failed; None if no rank at fault has one."""
        if self.finding is None:
            return None
        ranks = self.finding.ranks
        others = {process.file for process in self.run.processes if ranks and process.rank not in ranks}
        for evidence in self.finding.evidence:
            if evidence.site is not None and evidence.site.file and evidence.file not in others:
                return evidence.site
        return None

    @property
    def place(self) -> Tuple[str, int]:
        """Return the file and the number of that line."""
        return (self.site.file, self.site.line) if self.site is not None else ("", 0)


class Story(NamedTuple):
    """The attempts before this one, oldest first, and why others could not be read."""

    earlier: List[Attempt]
    lacking: str = ""


@fact
def story(run: Run) -> Story:
    """Return the attempts before this run: other runs first, then the starts by its own launcher."""
    before, lacking = _other_runs(run)
    starts = [each for each in run.earlier_generations if each.processes]
    within = []
    for number, generation in enumerate(starts, 1):
        within.append(attempt(judge.judge(generation), "%s, start %d" % (run.name, number)))
    return Story([*before, *within], lacking)


def attempt(diagnosis: "judge.Diagnosis", name: str = "") -> Attempt:
    """Return what is known of one start."""
    run = diagnosis.run
    finding = next((each for each in diagnosis.findings if each.severity == ERROR), None)
    until = float("inf")
    if finding is not None and finding.when > _LINES:
        until = finding.when
    return Attempt(
        name or run.name,
        run,
        finding,
        _hosts(run.processes),
        _hosts(process for process in run.processes if finding is not None and process.rank in finding.ranks),
        list(_loaded(run)),
        list(_saved(run, until)),
    )


def _hosts(processes: Iterable[LoggedProcess]) -> List[str]:
    return sorted({process.host for process in processes if process.host})


def _steps(process: LoggedProcess) -> int:
    kept = process.ledger
    return kept.steps.numbers[-1] if kept is not None and len(kept.steps.numbers) else 0


def _loaded(run: Run) -> Iterator[str]:
    for process in run.processes:
        for call in process.calls(schema.Load):
            if call.failure is None and call.begin.file is not None and _is_file(call.begin.file.path):
                yield _path(call.begin.file.path, process)


def _saved(run: Run, until: float) -> List[str]:
    """Return the checkpoints that were written whole, the newest last.

    One that is written because of the failure does not count: the next attempt fails there again.
    """
    saves: List[Tuple[float, str]] = []
    for process in run.processes:
        calls = process.calls(schema.Save)
        calls = [call for call in calls if call.end is not None and call.failure is None]
        calls = [call for call in calls if _is_file(call.begin.path)]
        saves += [(call.when, _path(call.begin.path, process)) for call in calls if call.when < until]
    return [path for _, path in sorted(saves)]


def _is_file(path: str) -> bool:
    """Tell whether it was a path: what a job writes into its memory has none, and is gone with it."""
    return not path.startswith("<")


def _path(path: str, process: LoggedProcess) -> str:
    return _UNFINISHED.sub("", os.path.normpath(os.path.join(process.started.cwd, path)))


class _Start(NamedTuple):
    """How a run of DDP_PROBE_DIR was started."""

    folder: str
    key: _Key
    when: float
    job: str  # Of the scheduler.


def _other_runs(run: Run) -> Tuple[List[Attempt], str]:
    """Return the attempts among the other runs of the folder, oldest first, and why one was not read."""
    try:
        place, own = os.path.realpath(find.root()), set(map(os.path.realpath, run.folders))
    except ValueError:  # A name that no file can have.
        return [], ""
    if run.bundle is not None or {os.path.dirname(folder) for folder in own} != {place}:
        return [], ""
    starts = [start for start in map(_start, run.folders) if start is not None]
    mine = min(starts, key=lambda start: start.when, default=None)
    if mine is None:
        return [], ""
    attempts: List[Attempt] = []
    taken, later, lacking = set(own), mine, ""
    for before in _alike(place, mine, own):
        if os.path.realpath(before.folder) in taken:
            continue  # It is the part of another host.
        earlier, lacking = _read(before, later) if len(attempts) < _MOST else (None, "")
        if earlier is None:
            break
        attempts.append(attempt(judge.judge(earlier)))
        taken.update(map(os.path.realpath, earlier.folders))
        later = before
    return attempts[::-1], lacking


def _read(start: _Start, later: _Start) -> Tuple[Optional[Run], str]:
    """Return a run if it is an attempt before the later one, or why that is not known."""
    name = os.path.basename(start.folder)
    try:
        summary = glance.at(start.folder)
        if summary.ended in ("well", "running") or not _follows(start, summary, later):
            return None, ""
        if summary.bytes > _LARGEST:
            return None, say("{run} is too large to be read beside this one", run=name)
        return load([start.folder]), ""
    except (ProbeError, OSError, ValueError):
        return None, say("{run} cannot be read", run=name)


def _alike(place: str, mine: _Start, own: Set[str]) -> List[_Start]:
    """Return the runs of the same command that began before this one, the newest first."""
    folders = [folder for folder in find.runs(place)[:_LOOKED_AT] if os.path.realpath(folder) not in own]
    starts = [start for start in map(_start, folders) if start is not None]
    alike = [start for start in starts if start.key == mine.key and start.when < mine.when]
    return sorted(alike, key=lambda start: start.when, reverse=True)


def _follows(before: _Start, summary: "glance.Glance", later: _Start) -> bool:
    """Tell whether one run ended before the next began, and not long before."""
    ended = summary.modified
    if ended > later.when + _SKEW:
        return False
    return (bool(before.job) and before.job == later.job) or later.when - ended <= _APART


def _start(folder: str) -> Optional[_Start]:
    """Return how a run was started, by the first line of one file: of a launcher, or of a rank."""
    try:
        names = [name for name in sorted(os.listdir(folder)) if _OF_PROBE.match(name)]
    except OSError:
        return None
    if not names:
        return None
    event = log_lines.first(os.path.join(folder, names[0]))
    words = event.get("argv")
    if not isinstance(words, list) or not words:
        return None
    given = event.get("environment")
    variables: Dict[str, Any] = given if isinstance(given, dict) else {}
    when = log_lines.seconds(str(event.get("ts", ""))) or 0.0
    key = (str(event.get("event")), tuple(_kept(list(map(str, words)))), str(event.get("cwd")))
    return _Start(folder, key, when, str(variables.get("SLURM_JOB_ID", "")))


def _kept(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command, without the arguments that are drawn anew for each attempt."""
    values = chain([""], words)
    for before, word in zip(values, words):
        drawn = _DRAWN.match(word) or (_DRAWN.match(before) and "=" not in before)
        if not drawn:
            yield word
