"""Aligns the clocks of several hosts at the calls that all ranks leave at the same time."""

from typing import Callable, Dict, List

from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed

# A rank leaves these calls only after all ranks have entered: they end at the same time, to within milliseconds.
_COMMON = (schema.InitProcessGroup, schema.Wrap)


def align_clocks(run: Run) -> None:
    """Shift each host's clock to that of the host with the most ranks, and note the largest difference."""
    hosts: Dict[str, List[LoggedProcess]] = {}
    for process in (*run.processes, *run.earlier):
        hosts.setdefault(process.host, []).append(process)
    if len(hosts) < 2:
        return
    from statistics import median

    marks = {host: _marks(processes, median) for host, processes in hosts.items()}
    first = max(hosts, key=lambda host: (len(hosts[host]), host))
    offsets: Dict[str, float] = {first: 0.0}
    for host in set(hosts) - {first}:
        both = set(marks[host]) & set(marks[first])
        if both:
            offsets[host] = median(marks[first][name] - marks[host][name] for name in both)
    if len(offsets) > 1:
        run.inventory.clock_spread = max(offsets.values()) - min(offsets.values())
    unknown = sorted(set(hosts) - set(offsets))
    if unknown:
        run.inventory.notes.append(
            say("The clocks of {hosts} could not be aligned: they share no event with {first}.", hosts=listed(unknown), first=first)
        )
    for process in (*run.processes, *run.earlier, *run.launchers):
        if offsets.get(process.host):
            process.shift(offsets[process.host])


def _marks(processes: List[LoggedProcess], median: Callable[[List[float]], float]) -> Dict[str, float]:
    marks: Dict[str, float] = {}
    for kind in _COMMON:
        ends: List[float] = []
        for process in processes:
            call = process.first(kind)
            if call is not None and call.until is not None and call.failure is None:
                ends.append(call.until)
        if ends:
            marks[str(kind.__struct_config__.tag)] = median(ends)
    return marks
