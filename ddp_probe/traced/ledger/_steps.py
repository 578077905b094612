"""The ring of steps: how long each step took and in which phases, from the end of one backward pass to the end of the next.

Every rank of a data-parallel job waits for the others in its backward pass, so that the time outside of it is the rank's own.
"""

from typing import Any, List, Optional, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.traced.ledger._threads import LedgerThread
from ddp_probe.traced.record.ledger import PLACES

_ROWS = schema.PHASE_ROWS + 1
_CODES = {code.name: code.code for code in schema.PHASES}
BACKWARD = _CODES["backward"]
_NAMES = ("dataloader", "forward", "optimizer", "checkpoint", "save", "load", "validate", "test")
_DATA, _FORWARD, _OPTIMIZER, _CHECKPOINT, _SAVE, _LOAD, _VALIDATE, _TEST = (_CODES[name] for name in _NAMES)


_OpenStep = Tuple[int, int, int, List[int], Optional[LedgerThread]]
"""Its number, when it began, how long its thread had waited by then, its times by phase, and which thread trains: unknown before its first
backward pass has ended. One value, so that no exception finds half of it changed."""


class StepRing:
    """What has been added up since the last backward pass. `step` is read by the hot path, which adds to its times."""

    def __init__(self, mapped: Any) -> None:
        self._map = mapped
        layout = schema.layout(schema.STEP)
        self._pack, self._size = layout.pack_into, layout.size
        self.step: _OpenStep = (1, 0, 0, [0] * _ROWS, None)

    def end(self, thread: LedgerThread, now: int, waited: int) -> None:
        """Write the step that ends with this backward pass, before which its thread had waited so long in calls."""
        number, began, before, times, _ = self.step
        saving = times[_SAVE] + times[_LOAD]
        self._pack(
            self._map,
            PLACES.steps + (number & (schema.STEPS - 1)) * self._size,
            number,
            began,
            now,
            times[_DATA],
            times[_FORWARD],
            times[BACKWARD],
            times[_OPTIMIZER],
            saving if saving > times[_CHECKPOINT] else times[_CHECKPOINT],  # max() costs three times as much.
            times[_VALIDATE] + times[_TEST],
            waited - before if waited > before else 0,
            number,
        )
        self.step = number + 1, now, thread.waited, [0] * _ROWS, thread
