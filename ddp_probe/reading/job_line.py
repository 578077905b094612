"""Finds the line of the job, which the user can change: in a traceback, in an exception nested in another, and for calls of spawned children."""

import re
from typing import Dict, List, Optional, Sequence

import msgspec

from ddp_probe.reading.logged_call import KeptCalls
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.own_code import foreign, of_installed_program
from ddp_probe.shared.schema import Site

_STARTS_CHILDREN = Expression(r"[/\\]multiprocessing[/\\](?:spawn|forkserver)\.py$")
_RUNS_MODULES = Expression(r"^<frozen runpy>$|[/\\]runpy\.py$")
_BEGINS = ("spawn_main", "main")  # What the command lines of multiprocessing call; no line of a program does.


def own_frames(frames: Sequence[Site]) -> List[Site]:
    """Return the frames of the job's code, in their order, outermost first."""
    return [frame for index, frame in enumerate(frames) if _is_own(frames, index)]


def job_line(frames: Sequence[Site]) -> Optional[Site]:
    """Return the innermost frame of the job's code; None if all frames belong to libraries and launchers."""
    place = next((index for index in reversed(range(len(frames))) if _is_own(frames, index)), None)
    if place is not None:
        return frames[place]
    inner = list(reversed(frames))
    first = next((frame for frame in frames if not _RUNS_MODULES.search(frame.file)), None)
    launched = first.file if first is not None and first.function == "<module>" else ""
    program = of_installed_program([frame.file for frame in inner], launched)
    return None if program is None else inner[program]


def _is_own(frames: Sequence[Site], index: int) -> bool:
    return not foreign(frames[index].file) and not (frames[index].file == "<string>" and _starts_a_child(frames[index + 1 : index + 2]))


def _starts_a_child(called: Sequence[Site]) -> bool:
    """Tell whether a command line calls multiprocessing's start of a child, a line that no person wrote."""
    return any(frame.function in _BEGINS and _STARTS_CHILDREN.search(frame.file) is not None for frame in called)


# Finds an exception nested in another one: a worker's or child's traceback in its message, or the exception that it was raised from.

_TRACEBACK = "Traceback (most recent call last)"
_FRAME = Expression(r'^\s*File "([^"\n]{1,1000})", line (\d{1,9}), in ([^\n]{1,200})$', re.MULTILINE)
_LAST = Expression(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: [^\n]*)?$", re.MULTILINE)
_WORKER = Expression(r"Caught \w+ in (?:DataLoader worker|pin memory thread)")
_LONGEST = 200


def nested_line(message: str) -> Optional[Site]:
    """Return the line of the job that raised an exception in a worker of a DataLoader, by the traceback in the message; None for others."""
    if not _WORKER.match(message):
        return None
    return job_line([Site(file, int(number), function) for file, number, function in _FRAME.findall(message)])


def inside(message: str, cause_message: str = "", cause: str = "") -> str:
    """Return the nested exception in one line, with the line of the job that raised it; empty if there is none."""
    if _TRACEBACK in message:
        lasts = _LAST.findall(message)
        if not lasts:
            return ""
        frames = [Site(file, int(number), function) for file, number, function in _FRAME.findall(message)]
        site = job_line(frames)
        return _cut(lasts[-1]) + (", at %s:%d" % (site.file, site.line) if site is not None else "")
    first = next((line.strip() for line in cause_message.splitlines() if line.strip()), "")
    return "from %s: %s" % (cause.rpartition(".")[2], _cut(first)) if first and first not in message else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"


# Gives the calls of spawned children the line of the job that started the children, if no line of the job is above the call in the child itself.
#
# This happens if a library spawns its own functions, as Lightning's ddp_spawn does.


def place_spawned(run: Run) -> None:
    """Give the calls that have no line of the job the line that called start_processes."""
    by_host: Dict[str, List[LoggedProcess]] = {}
    for process in run.processes:
        if process.started.role == "promoted":
            by_host.setdefault(process.host, []).append(process)
    for launcher in run.launchers if by_host else ():
        by_pid: Dict[int, Site] = {}
        calls = [(call.site, call.end) for call in launcher.calls(schema.LauncherGroup) if call.site is not None]
        for site, end in calls:
            by_pid.update(dict.fromkeys(end.children.values() if end is not None else (), site))
        only = calls[0][0] if len(calls) == 1 else None  # A failed call has no pids.
        for process in by_host.get(launcher.host, ()):
            _place(process, by_pid.get(process.pid, only))


def _place(process: LoggedProcess, site: Optional[Site]) -> None:
    kept = process.kept
    if site is None or foreign(site.file) or not any(_is_a_librarys(event) for event in kept.events):
        return
    events = tuple(msgspec.structs.replace(event, site=site) if event is not None and _is_a_librarys(event) else event for event in kept.events)
    process.kept = KeptCalls(kept.file, kept.kinds, events, kept.lines, kept.times)


def _is_a_librarys(event: Optional[schema.Event]) -> bool:
    """Tell whether a call was made by a library alone: at no line of the job, or at a line of an installed program."""
    return event is not None and (event.phase == "begin" if event.site is None else foreign(event.site.file))
