"""Running sums of what the ring of records forgets: per group, operation and line of the job, how many calls there were and how long they took.

Below the ring they would cost five stores into the file a call. They are kept here, which costs a third of that, and the thread that writes the file
copies them: what a killed process adds in its last quarter of a second is lost.
"""

from typing import Any, Dict, List, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.traced.record.ledger import PLACES

_WRAP = (1 << 64) - 1
_Key = Tuple[int, int, int]
Row = List[Any]
"""Calls, time inside, longest, sum of the times of entry, the record counted last: one value, so that no exception finds half of it changed.

After it the operation, which is 0 in the row of all that found none."""


class Sums:
    """The rows of one ledger. The hot path replaces what it finds there."""

    def __init__(self, mapped: Any) -> None:
        self._map = mapped
        self._layout = schema.layout(schema.SUM)
        self._rest: _Key = (0, 0, 0)
        self.rows: Dict[_Key, Row] = {self._rest: _empty(0)}

    def row(self, op: int, group: int, site: int) -> Row:
        """Return the row of these calls: a new one if they have none, or the first if all are taken."""
        key = op, group, site
        found = self.rows.get(key)
        if found is None:
            found = self.rows[self._rest] if len(self.rows) >= schema.SUMS else self.rows.setdefault(key, _empty(op))
        return found

    def put(self) -> None:
        """Copy the rows into the memory of the ledger."""
        for place, ((op, group, site), ((calls, inside, longest, entered, _), _)) in enumerate(list(self.rows.items())):
            at = PLACES.sums + place * self._layout.size
            self._layout.pack_into(self._map, at, op, group, site, 0, calls, inside, longest, entered & _WRAP)


def _empty(op: int) -> Row:
    return [(0, 0, 0, 0, 0), op]


def count_call(row: Row, record: int, entered: int, ns: int) -> None:
    """Count a call that has returned; the hot path does the same without a call."""
    calls, inside, longest, began, _ = row[0]
    row[0] = calls + 1, inside + ns, max(longest, ns), began + entered, record


def add_wait(row: Row, ns: int) -> None:
    """Add the time of a wait for work whose call has been counted."""
    calls, inside, longest, began, record = row[0]
    row[0] = calls, inside + ns, max(longest, ns), began, record
