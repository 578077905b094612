"""Ranks whose watchers do not wake, looked at twice from outside: the process is paused, or native code holds the GIL."""

import time
from typing import List

from ddp_probe.shared import schema
from ddp_probe.traced.facts.birth import cpu_of, waits_in
from ddp_probe.traced.hangs.others import Owner


class Unheard:
    """Those that have not woken for this long. Whoever has been let go on wakes before the second look."""

    def __init__(self, owners: List[Owner], longest: float) -> None:
        self._longest = longest
        self._began = time.monotonic()
        self._cpu = [(owner, cpu_of(owner.pid)) for owner in owners if owner.silence() > longest]
        self._paused = [owner for owner in owners if owner.is_paused()]

    def __len__(self) -> int:
        return len(self._cpu)

    def is_over(self) -> bool:
        """Tell whether one that was paused has been let go on: the others are about to be."""
        return any(not owner.is_paused() for owner in self._paused)

    def events(self) -> List[schema.LauncherSilent]:
        """Return what is seen of those that have not woken since."""
        return [self._seen(owner, cpu) for owner, cpu in self._cpu if owner.silence() > self._longest and owner.is_alive()]

    def _seen(self, owner: Owner, before: float) -> schema.LauncherSilent:
        state, place = waits_in(owner.pid)
        return schema.LauncherSilent(
            child_rank=owner.rank,
            child_pid=owner.pid,
            since=owner.silence(),
            paused=owner.is_paused(),
            state=state,
            wchan=place,
            load=round((cpu_of(owner.pid) - before) / max(time.monotonic() - self._began, 0.01), 2),
        )
