"""The ring of steps: how long each step took and in which phases, from the end of one backward pass to the end of the next.

Every rank of a data-parallel job waits for the others in its backward pass, so that the time outside of it is the rank's own.
"""

from threading import get_ident
from typing import Any, Callable, List, Optional

from ddp_probe import ledger_schema as schema
from ddp_probe.record.ledger import PLACES

_CODES = {code.name: code.code for code in schema.PHASES}
BACKWARD = _CODES["backward"]
_NAMES = ("dataloader", "forward", "optimizer", "checkpoint", "save", "load", "validate", "test")
_DATA, _FORWARD, _OPTIMIZER, _CHECKPOINT, _SAVE, _LOAD, _VALIDATE, _TEST = (_CODES[name] for name in _NAMES)


class StepRing:
    """What has been added up since the last backward pass."""

    def __init__(self, mapped: Any, inside: Callable[[], int]) -> None:
        self._map = mapped
        self._inside = inside
        layout = schema.layout(schema.STEP)
        self._pack, self._size = layout.pack_into, layout.size
        self._times: List[int] = [0] * (schema.PHASE_ROWS + 1)
        self._thread: Optional[int] = None
        self._count = 0
        self._ended = 0
        self._waited = 0
        self._waited_before = 0

    def backward(self) -> None:
        """A backward pass begins: what the rank waits from here on is part of it."""
        self._waited = self._inside()

    def add(self, phase: int, ns: int) -> None:
        """Count the time of a phase, if it is of the thread that trains."""
        if self._thread is None or self._thread == get_ident():
            self._times[phase] += ns

    def end(self, now: int) -> None:
        """Write the step that ends with this backward pass."""
        times = self._times
        self._times = [0] * len(times)
        saving = times[_SAVE] + times[_LOAD]
        self._count = count = self._count + 1
        self._pack(
            self._map,
            PLACES.steps + (count & (schema.STEPS - 1)) * self._size,
            count,
            self._ended,
            now,
            times[_DATA],
            times[_FORWARD],
            times[BACKWARD],
            times[_OPTIMIZER],
            saving if saving > times[_CHECKPOINT] else times[_CHECKPOINT],  # max() costs three times as much.
            times[_VALIDATE] + times[_TEST],
            self._waited - self._waited_before,
            count,
        )
        self._ended, self._waited_before, self._thread = now, self._inside(), get_ident()
