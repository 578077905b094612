"""Gives the calls of spawned children the line of the job that started them, if they have no line of their own.

This happens if a library spawns its own functions, as Lightning's ddp_spawn does.
"""

from typing import Dict, List, Optional

import msgspec

from ddp_probe.reading.logged_call import KeptCalls
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.own_code import foreign
from ddp_probe.shared.schema import Site


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
