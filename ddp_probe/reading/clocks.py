"""Aligns the clocks of several hosts at the calls that all ranks leave at the same time."""

from statistics import median
from typing import Dict, List

from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema

# A rank leaves these calls only after all ranks have entered: they end at the same time, to within milliseconds.
_COMMON = (schema.InitProcessGroup, schema.Wrap)


def align(run: Run) -> None:
    """Shift each host's clock to that of the host with the most ranks, and note the largest difference."""
    hosts: Dict[str, List[LoggedProcess]] = {}
    for process in (*run.processes, *run.earlier):
        hosts.setdefault(process.host, []).append(process)
    if len(hosts) < 2:
        return
    marks = {host: _marks(processes) for host, processes in hosts.items()}
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
        run.inventory.notes.append("The clocks of %s could not be aligned: they share no event with %s." % (", ".join(unknown), first))
    for process in (*run.processes, *run.earlier, *run.launchers):
        if offsets.get(process.host):
            process.shift(offsets[process.host])


def _marks(processes: List[LoggedProcess]) -> Dict[str, float]:
    found: Dict[str, float] = {}
    for kind in _COMMON:
        ends = [call.until for process in processes for call in process.calls(kind)[:1] if call.until is not None and call.failure is None]
        if ends:
            found[str(kind.__struct_config__.tag)] = median(ends)
    return found
