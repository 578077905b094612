"""Memory over time, as device.state has it: of each rank's devices, and of its process."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe import schema
from ddp_probe.diagnose.words import at
from ddp_probe.read.logged_call import LoggedCall
from ddp_probe.read.model import LoggedProcess
from ddp_probe.schema import Site

MIB = 1 << 20
StateLine = LoggedCall[schema.DeviceState]


class MemoryPoint(NamedTuple):
    """The memory in one line."""

    call: StateLine
    held: int
    peak: int

    @property
    def step(self) -> Optional[int]:
        """Return how often backward had been entered."""
        return self.call.begin.step


def states(process: LoggedProcess) -> List[StateLine]:
    """Return the lines that the reader keeps: the first eight and the last eight."""
    return process.calls(schema.DeviceState)


def of_device(process: LoggedProcess, device: str) -> List[MemoryPoint]:
    """Return what the tensors of a rank have held on a device."""
    found = [(call, one) for call in states(process) for one in call.begin.devices if one.device == device]
    return [MemoryPoint(call, one.allocated or 0, one.allocated_peak or one.allocated or 0) for call, one in found]


def of_process(process: LoggedProcess) -> List[MemoryPoint]:
    """Return what a process has held of the host's memory, without the files that it has mapped."""
    found = [(call, call.begin.system) for call in states(process)]
    return [MemoryPoint(call, one.anonymous, one.anonymous) for call, one in found if one is not None and one.anonymous]


def devices(process: LoggedProcess) -> Dict[str, int]:
    """Return the peak of each device that a rank has used."""
    last = process.final(schema.DeviceState)
    return {one.device: peak for one in (last.begin.devices if last is not None else ()) for peak in [one.allocated_peak or one.allocated] if peak}


def main_device(process: LoggedProcess) -> Optional[Tuple[str, int]]:
    """Return the device on which a rank has held the most, and how much."""
    used = devices(process)
    device = max(used, key=lambda name: used[name], default=None)
    return (device, used[device]) if device is not None else None


def event_of(call: StateLine) -> str:
    """Return the event at which a line was written; empty for one from time to time."""
    return call.begin.when.partition(" ")[0] if " " in call.begin.when else ""


def site_of(process: LoggedProcess, call: StateLine) -> Optional[Site]:
    """Return the line of the job that made the call at which a line was written: of its kind, the nearest in time."""
    name = event_of(call)
    made = [(abs(when - call.when), one.line, one.site) for one in process.every() if one.name == name for when in (one.when, one.until or one.when)]
    return min(made)[2] if made else None


def between(process: LoggedProcess, before: Optional[StateLine], after: StateLine) -> str:
    """Say when something grew: between two lines, and at which line of the job if the later one was written at a call."""
    since = "after '%s' and before" % before.begin.when if before is not None else "before"
    step = ", by step %d" % after.begin.step if after.begin.step and not event_of(after) else ""
    return "%s '%s'%s%s" % (since, after.begin.when, at(site_of(process, after)), step)


def system(process: LoggedProcess) -> Iterator[Tuple[StateLine, schema.HostState]]:
    """Yield what was read of the host."""
    for call in states(process):
        if call.begin.system is not None:
            yield call, call.begin.system
