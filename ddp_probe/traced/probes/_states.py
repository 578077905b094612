"""Writes device.state: at the events of the probes that ask for it, from time to time, and at the end.

It is a line only if something has changed since the last one, so that a log of a week stays small. A failure, a hang and the end always have theirs.
"""

import time
from typing import TYPE_CHECKING, Dict, Optional, Protocol

from ddp_probe.shared import schema, settings
from ddp_probe.traced.facts.device_memory import device_memory
from ddp_probe.traced.facts.host_state import HostReader
from ddp_probe.traced.patching.guard import guard

if TYPE_CHECKING:
    from ddp_probe.activation.this_process import ThisProcess
    from ddp_probe.traced.ledger import Collectives
    from ddp_probe.traced.record import Recorder

_BYTES, _SHARE = 16 << 20, 0.01
"""A change of memory below either of them is none."""
_FIRST = 1.0
_GROWS = 2
_SIZES = ("allocated_peak", "reserved", "rss", "memory", "shm_free")
_OURS = ("periodic", "hang")  # What the watcher's thread writes, in which no device has been chosen.
_COUNTS = ("retries", "out_of_memory", "oom_kills")


class StatesSession(Protocol):
    """The session as it is seen from here."""

    process: "ThisProcess"
    recorder: "Recorder"
    collectives: "Collectives"


class DeviceStates:
    """What this process has last written of its devices and of its host."""

    def __init__(self, session: StatesSession) -> None:
        self._session = session
        self._every: Optional[float] = settings.get(settings.STATE_EVERY)
        self._host: Optional[HostReader] = None
        self._last: Dict[str, int] = {}
        self._current = ""
        self._pause = _FIRST
        self._due = 0.0

    def note(self, when: str, always: bool = False) -> None:
        """Write a line, unless nothing has changed; none in a launcher, and none before the first event of a probe."""
        if self._every is not None and self._session.process.role.name != "launcher" and self._session.recorder.path is not None:
            guard.run("state", self._write, when, always)

    def _write(self, when: str, always: bool) -> None:
        event = self._event(when)
        now = _numbers(event)
        if always or _differ(self._last, now):
            self._last = now
            self._session.recorder.point(event)

    def look(self) -> None:
        """Be called about once a second: write a line if it is time, after 1, 2, 4 … seconds and then every DDP_PROBE_STATE_EVERY."""
        now = time.monotonic()
        if self._every is None or now < self._due:
            return
        first, self._due = not self._due, now + self._pause
        self._pause = min(self._pause * _GROWS, self._every)
        if not first:
            self.note("periodic")

    def _event(self, when: str) -> schema.DeviceState:
        if self._host is None:
            self._host = HostReader()
        current, devices = device_memory(self._current, ask=when not in _OURS)
        self._current = current
        step = self._session.collectives.stands().get("step")
        return schema.DeviceState(when=when, current=current, devices=devices, system=self._host.state(), step=step)


def _numbers(event: schema.DeviceState) -> Dict[str, int]:
    found = {}
    for place, part in (("", event.system), *((one.device, one) for one in event.devices)):
        for name in (*_SIZES, *_COUNTS):
            value = getattr(part, name, None)
            if value is not None and (name != "memory" or getattr(part, "memory_limit", None)):  # Without a limit it is the whole host's.
                found[place + " " + name] = value
    return found


def _differ(before: Dict[str, int], now: Dict[str, int]) -> bool:
    """Tell whether a size has changed by 16 MiB and 1 %, or a count at all."""
    if before.keys() != now.keys():
        return True
    for name, value in now.items():
        change = abs(value - before[name])
        if name.endswith(_COUNTS) and change:
            return True
        if change > _BYTES and change > _SHARE * before[name]:
            return True
    return False
