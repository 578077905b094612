"""The line of the job's own code at which a rank is, by the stacks that it has left since its ledger moved for the last time.

A stack that is older than that says where the rank was, not where it is. Several stacks at one line mean that the rank stands there; at
different lines, that it still runs.
"""

from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading import rank_stacks
from ddp_probe.reading.job_line import job_line, own_frames
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.shared import schema
from ddp_probe.shared.own_code import task, waits_for_its_processes

SERVED = "processes"
"""The task of a rank that waits for processes that it has started, and that compute."""
_SLACK = 0.1  # Seconds; file systems write coarse times.
_Frames = Tuple[Tuple[str, int], ...]


class _Look(NamedTuple):
    """The main thread of a rank at one time."""

    when: float  # On the clock of its host.
    frames: List[schema.Site]
    at: LogLine
    is_dump: bool = False
    is_served: bool = False  # Processes that it has started compute while it stands.


class OwnLine(NamedTuple):
    """The innermost line of the job's own code at which a rank is, and whether it stands there."""

    site: schema.Site
    at: LogLine  # What shows it.
    before: Optional[schema.Site] = None  # Another line at which it was since then.
    moves: bool = False  # It was at different lines: it still runs.
    task: str = ""  # The function that evaluates or saves, as its name says; or that it imports, is in a debugger, or waits for its own processes.
    holds_gil: bool = False  # C code that does not give the GIL back: no other thread of the process could run.

    @property
    def is_work(self) -> bool:
        """Tell whether it does something that may take long, and end."""
        return self.moves or bool(self.task)


def own_line(process: LoggedProcess, ledger: RankLedger, latest: float) -> Optional[OwnLine]:
    """Return where a rank is; `latest` is until when the run is known, on the clock of its host."""
    looks = sorted(_looks(process, ledger, latest), key=lambda look: look.when)
    found = [(look, site) for look in looks for site in [job_line(look.frames)] if site is not None]
    if not found:
        return None
    last, site = found[-1]
    before = next((one for _, one in reversed(found) if (one.file, one.line) != (site.file, site.line)), None)
    moves = len({_own(look.frames) for look, _ in found}) > 1
    doing = task([(frame.file, frame.function) for frame in last.frames]) or (SERVED if last.is_served else "")
    return OwnLine(site, last.at, before, moves, doing, last.is_dump and len(looks) == 1)


def is_served(look: schema.Event) -> bool:
    """Tell whether processes that a rank has started compute while it stands."""
    if not isinstance(look, schema.HangSuspected):
        return False
    frames = [(frame.file, frame.function) for frame in rank_stacks.main_frames(look.threads)]
    return waits_for_its_processes(frames, look.still or 0.0, look.children)


def _looks(process: LoggedProcess, ledger: RankLedger, latest: float) -> Iterator[_Look]:
    calls: List[LoggedCall[Any]] = [*process.calls(schema.HangSuspected), *process.calls(schema.Stacks)]
    for call in calls:
        when = ledger.when(call.begin.mono_ns) if call.begin.mono_ns else call.when - process.offset
        frames = rank_stacks.main_frames(call.begin.threads)
        if frames and when >= ledger.moved and not _came_after(process, when):
            yield _Look(when, frames, call.at, is_served=is_served(call.begin))
    dump = rank_stacks.dumped(process.file)
    if dump is not None and _is_new(process, ledger, dump.when, latest):
        yield _Look(min(dump.when, latest), rank_stacks.main_frames(dump.threads), LogLine(rank_stacks.dump_of(process.file), 1), is_dump=True)


def _is_new(process: LoggedProcess, ledger: RankLedger, when: float, latest: float) -> bool:
    """Tell whether faulthandler's text is of the last standstill. A copied file has the time of the copy: then nothing may have been over since."""
    if when > latest + _SLACK:
        return all(_came_after(process, call.when - process.offset) for call in process.calls(schema.HangOver))
    return when + _SLACK >= ledger.moved


def _came_after(process: LoggedProcess, when: float) -> bool:
    """Tell whether a time on the clock of its host is after the signal from outside that ended the process."""
    return process.stood_until is not None and when > process.stood_until


def _own(frames: Sequence[schema.Site]) -> _Frames:
    """Return the lines of the job's own code: library code that waits may be at other lines each time."""
    return tuple((frame.file, frame.line) for frame in own_frames(frames))
