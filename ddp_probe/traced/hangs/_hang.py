"""When a standstill is told, how often, and how long it was."""

from typing import Optional

from ddp_probe.shared import schema


class Hang:
    """One standstill: since when, and how often it has been told; told again after twice the time, four times, eight times."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._moved = 0
        self._step = 0
        self._told = 0
        self._written = False

    def is_due(self, since: float) -> bool:
        """Return whether it is time to say how long nothing has moved."""
        return since >= self._after * (1 << self._step)

    def pass_on(self, told: bool) -> None:
        """Wait for twice the time from here, whether it was told or was nothing to tell of."""
        self._step += 1
        self._told += told

    def was_written(self) -> None:
        """Note that the timer has written stacks: nothing could be told meanwhile."""
        self._written = True

    def over(self, moved: int) -> Optional[schema.Event]:
        """Return the event that ends what was told or written, if the process has moved since."""
        before, self._moved = self._moved, moved
        if moved == before:
            return None
        told, self._told, self._step = self._told, 0, 0
        written, self._written = self._written, False
        return schema.HangOver(lasted=(moved - before) / 1e9, suspected=told) if told or written else None
