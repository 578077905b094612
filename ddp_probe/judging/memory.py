"""Memory over time, as device.state has it: of each rank's devices, of its process, and what of a limit is left."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging import card_use
from ddp_probe.judging.facts import fact
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, quoted, size

MIB = 1 << 20
NEARLY = 0.9
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
    points: List[MemoryPoint] = []
    for call in states(process):
        for memory in call.begin.devices:
            if memory.device == device:
                held = memory.allocated or 0
                points.append(MemoryPoint(call, held, memory.allocated_peak or held))
    return points


def of_process(process: LoggedProcess) -> List[MemoryPoint]:
    """Return what a process has held of the host's memory, without the files that it has mapped."""
    pairs = [(call, call.begin.system) for call in states(process)]
    return [
        MemoryPoint(call, host_state.anonymous, host_state.anonymous) for call, host_state in pairs if host_state is not None and host_state.anonymous
    ]


def devices(process: LoggedProcess) -> Dict[str, int]:
    """Return the peak of each device that a rank has initialised; since its last line it has grown by less than 16 MiB or 1 %."""
    last = process.final(schema.DeviceState)
    peaks = [(memory.device, memory.allocated_peak or memory.allocated) for memory in (last.begin.devices if last is not None else ())]
    return {device: peak for device, peak in peaks if peak is not None}


def main_device(process: LoggedProcess) -> Optional[Tuple[str, int]]:
    """Return the device on which a rank has held the most, and how much."""
    used = devices(process)
    device = max(used, key=lambda name: used[name], default=None)
    return (device, used[device]) if device is not None else None


def event_of(call: StateLine) -> str:
    """Return the event at which a line was written; empty for a periodic line."""
    return call.begin.when.partition(" ")[0] if " " in call.begin.when else ""


def site_of(process: LoggedProcess, call: StateLine) -> Optional[Site]:
    """Return the line of the job that made the call at which a line was written: of its kind, the nearest in time."""
    name = event_of(call)
    made: List[Tuple[float, int, Optional[Site]]] = []
    for candidate in process.every():
        if candidate.name == name:
            away = abs(candidate.when - call.when)
            if candidate.until:
                away = min(away, abs(candidate.until - call.when))
            made.append((away, candidate.line, candidate.site))
    return min(made)[2] if made else None


def between(process: LoggedProcess, before: Optional[StateLine], after: StateLine) -> Text:
    """Say when something grew: between two lines, and at which line of the job if the later one was written at a call."""
    step = ""
    if after.begin.step and not event_of(after):
        step = say(", by step {number}", number=after.begin.step)
    end, where = quoted(after.begin.when), at(site_of(process, after))
    if before is None:
        return say("before '{end}'{at}{step}", end=end, at=where, step=step)
    template = "after '{begin}' and before '{end}'{at}{step}"
    return say(template, begin=quoted(before.begin.when), end=end, at=where, step=step)


def system(process: LoggedProcess) -> Iterator[Tuple[StateLine, schema.HostState]]:
    """Yield what was read of the host."""
    for call in states(process):
        if call.begin.system is not None:
            yield call, call.begin.system


_WHAT = {"host": say("host")}


class NearLimit(NamedTuple):
    """The line in which the least was left of something that the processes of a host share."""

    what: str  # "host" for its control group, or "/dev/shm".
    used: int
    there: int
    call: StateLine
    process: LoggedProcess

    @property
    def share(self) -> float:
        """Return the part in use."""
        return self.used / self.there


@fact
def near_limits(run: Run) -> Dict[str, List[NearLimit]]:
    """Return what is nearly used up of each host's control group and /dev/shm."""
    limits: Dict[str, List[NearLimit]] = {}
    for process in run.processes:
        for near_limit in _used(process):
            kept = limits.setdefault(process.host, [])
            before = next((other for other in kept if other.what == near_limit.what), None)
            if before is None or before.share < near_limit.share:
                kept[:] = sorted([other for other in kept if other is not before] + [near_limit], key=lambda other: other.what, reverse=True)
    return limits


def _used(process: LoggedProcess) -> Iterator[NearLimit]:
    for call, state in system(process):
        if state.memory_limit and (state.memory_taken or 0) >= NEARLY * state.memory_limit:
            yield NearLimit("host", state.memory_taken or 0, state.memory_limit, call, process)
        if state.shm_size and state.shm_free is not None and state.shm_free <= (1 - NEARLY) * state.shm_size:
            yield NearLimit("/dev/shm", state.shm_size - state.shm_free, state.shm_size, call, process)  # noqa: S108  # its name


def near(run: Run) -> Dict[str, Text]:
    """Say, by a rank's file, which limit is near: what its tensors have held of its card, if a tool reports the card's size, or of its host."""
    texts: Dict[str, List[Text]] = {}
    for host in card_use.loads_by_host(run):
        for card in host.last.begin.cards:
            here, there = (host.on(card), card.memory_total) if card.memory_total else ([], 0)
            for process in [process for process in host.ranks if process.rank in here]:
                held = main_device(process)
                if held is not None and held[1] >= NEARLY * there:
                    texts.setdefault(process.file, []).append(_part(say("card"), held[1], there))
    limits = near_limits(run)
    for process in run.processes if limits else ():
        for near_limit in limits.get(process.host, ()):
            texts.setdefault(process.file, []).append(_part(_WHAT.get(near_limit.what, near_limit.what), near_limit.used, near_limit.there))
    return {file: listed(parts) for file, parts in texts.items()}


def _part(what: str, used: int, there: int) -> Text:
    return say("{what} {percent} % of {limit}", what=what, percent=100 * used // there, limit=size(there))
