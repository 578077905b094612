"""The position of a process, from its ledger, and when and how often its standstill is reported."""

import json
from typing import Any, Iterator, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_schema, schema
from ddp_probe.shared.ledger_codec import PHASE, PLACES, RECORD, NamedRow
from ddp_probe.traced.record.ledger_memory import LedgerFile

_OPERATIONS = ledger_schema.names(ledger_schema.OPERATIONS)
_PHASES = ledger_schema.names(ledger_schema.PHASES)
_BACKWARD = next(code for code, name in _PHASES.items() if name == "backward")


class OwnPosition(NamedTuple):
    """The fields of hang.suspected that the ledger knows."""

    operation: str = ""
    number: Optional[int] = None
    group: str = ""
    size: Optional[int] = None
    during: str = ""
    step: Optional[int] = None


def standing(file: LedgerFile) -> OwnPosition:
    """Return where the process stands; everything is empty if no call and no phase is open."""
    during, step = phase_and_step(file)
    record = open_call(file.map)
    where = OwnPosition(during=during, step=step)
    if record is None:
        return where
    group, size = _group(file, record["group"])
    operation = _OPERATIONS.get(record["op"], "")
    return where._replace(operation=operation, number=int(record["seq"]), group=group, size=size)


def phase_and_step(file: LedgerFile) -> Tuple[str, Optional[int]]:
    """Return the phase that is open, or an empty string, and how many backward passes there were."""
    during = open_phase(file.map)
    step = next((int(row["count"]) for code, row in _phases(file.map) if code == _BACKWARD), None)
    return _PHASES.get(during[0], "") if during is not None else "", step


def open_call(data: Any) -> Optional[NamedRow]:
    """Return the newest call of the job that has not returned, or whose work is being waited for."""
    return max((row for row in records(data) if _is_open(row)), key=lambda row: int(row["index"]), default=None)


def open_phase(data: Any) -> Optional[Tuple[int, NamedRow]]:
    """Return the phase that was entered last and is open, with its code."""
    return max((row for row in _phases(data) if not row[1]["left"]), key=lambda row: int(row[1]["entered_ns"]), default=None)


def records(data: Any) -> Iterator[NamedRow]:
    """Yield every whole record of a ledger, in the order of its ring."""
    for at in range(PLACES.records, PLACES.end, RECORD.size):
        row = RECORD.read(data, at)
        if 0 != row["index"] == row["index_again"]:
            yield row


def _is_open(row: NamedRow) -> bool:
    """Return whether a call of the job has not returned, or its work is being waited for."""
    if row["flags"] & ledger_schema.INNER or row["left"] & 3 != ledger_schema.OPEN:
        return False
    return not row["left"] or row["waited_ns"] > 0


def _phases(data: Any) -> Iterator[Tuple[int, NamedRow]]:
    for code in _PHASES:
        row = PHASE.read(data, PLACES.phases + (code - 1) * PHASE.size)
        if 0 != row["stamp"] == row["stamp_again"]:
            yield code, row


def _group(file: LedgerFile, number: int) -> Tuple[str, Optional[int]]:
    """Return the group's id and its size."""
    text = file.text_of(ledger_schema.GROUP, number)
    if not text:
        return "", None
    described = json.loads(text)
    return described["id"], described["size"]


# When a standstill is reported, how often, and how long it was.


class Hang:
    """One standstill: since when, and how often it has been reported; reported again after twice the time, four times, eight times."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._moved = 0
        self._step = 0
        self._told = 0

    @property
    def is_told(self) -> bool:
        """Tell whether this standstill has been reported."""
        return bool(self._told)

    def is_due(self, since: float) -> bool:
        """Return whether it is time to say how long nothing has moved."""
        return since >= self._after * (1 << self._step)

    def pass_on(self, reported: bool) -> None:
        """Wait for twice the time from here, whether it was reported or there was nothing to report."""
        self._step += 1
        self._told += reported

    def over(self, moved: int) -> Optional[schema.Event]:
        """Return the event that ends what was reported, if the process has moved since."""
        before, self._moved = self._moved, moved
        if moved == before:
            return None
        reports, self._told, self._step = self._told, 0, 0
        return schema.HangOver(lasted=(moved - before) / 1e9, suspected=reports) if reports else None
