"""Running sums of what the ring of records forgets: per group, operation and line of the job, how many calls there were and how long they took.

Below the ring they would cost five stores into the file a call. They are lists, which cost a third of that, and the thread that writes the file
copies them: what a killed process adds in its last quarter of a second is lost.
"""

from typing import Any, Dict, List, Tuple

from ddp_probe import ledger_schema as schema
from ddp_probe.record.ledger import PLACES

CALLS, INSIDE, LONGEST, ENTERED = range(4)
"""Places in a row."""
_WRAP = (1 << 64) - 1
_Key = Tuple[int, int, int]


class Sums:
    """The rows of one ledger. `rows` is read by the hot path, which adds to what it finds there."""

    def __init__(self, mapped: Any) -> None:
        self._map = mapped
        self._layout = schema.layout(schema.SUM)
        self._rest: _Key = (0, 0, 0)
        self.rows: Dict[_Key, List[int]] = {self._rest: [0] * 4}

    def add(self, key: _Key) -> List[int]:
        """Return the row of calls that have none yet: a new one, or the first if all are taken."""
        if len(self.rows) >= schema.SUMS:
            return self.rows[self._rest]
        return self.rows.setdefault(key, [0] * 4)

    def inside(self) -> int:
        """Return the nanoseconds spent in all calls so far."""
        return sum([row[INSIDE] for row in list(self.rows.values())])

    def put(self) -> None:
        """Copy the rows into the memory of the ledger."""
        for place, ((op, group, site), row) in enumerate(list(self.rows.items())):
            at = PLACES.sums + place * self._layout.size
            self._layout.pack_into(self._map, at, op, group, site, 0, row[CALLS], row[INSIDE], row[LONGEST], row[ENTERED] & _WRAP)
