"""The position of a process, from its ledger: the newest call that is open, and the phase that was entered last and is open."""

import json
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.traced.record.ledger import PLACES, LedgerFile

_RECORD = schema.layout(schema.RECORD)
_PHASE = schema.layout(schema.PHASE)
_OPERATIONS = schema.names(schema.OPERATIONS)
_PHASES = schema.names(schema.PHASES)
_BACKWARD = next(code for code, name in _PHASES.items() if name == "backward")

Row = Dict[str, Any]


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
    found = open_call(file.map)
    where = OwnPosition(during=during, step=step)
    if found is None:
        return where
    group, size = _group(file, found["group"])
    return where._replace(operation=_OPERATIONS.get(found["op"], ""), number=int(found["seq"]), group=group, size=size)


def phase_and_step(file: LedgerFile) -> Tuple[str, Optional[int]]:
    """Return the phase that is open, or an empty string, and how many backward passes there were."""
    during = open_phase(file.map)
    step = next((int(row["count"]) for code, row in _phases(file.map) if code == _BACKWARD), None)
    return _PHASES.get(during[0], "") if during is not None else "", step


def open_call(data: Any) -> Optional[Row]:
    """Return the newest call of the job that has not returned, or whose work is being waited for."""
    return max((row for row in records(data) if _is_open(row)), key=lambda row: int(row["index"]), default=None)


def open_phase(data: Any) -> Optional[Tuple[int, Row]]:
    """Return the phase that was entered last and is open, with its code."""
    return max((row for row in _phases(data) if not row[1]["left"]), key=lambda row: int(row[1]["entered_ns"]), default=None)


def records(data: Any) -> Iterator[Row]:
    """Yield every whole record of a ledger, in the order of its ring."""
    for at in range(PLACES.records, PLACES.records + schema.RECORDS * _RECORD.size, _RECORD.size):
        row = dict(zip((field.name for field in schema.RECORD), _RECORD.unpack_from(data, at)))
        if 0 != row["index"] == row["index_again"]:
            yield row


def _is_open(row: Row) -> bool:
    """Return whether a call of the job has not returned, or its work is being waited for."""
    if row["flags"] & schema.INNER or row["left"] & 3 != schema.OPEN:
        return False
    return not row["left"] or row["waited_ns"] > 0


def _phases(data: Any) -> Iterator[Tuple[int, Row]]:
    for code in _PHASES:
        row = dict(zip((field.name for field in schema.PHASE), _PHASE.unpack_from(data, PLACES.phases + (code - 1) * _PHASE.size)))
        if 0 != row["stamp"] == row["stamp_again"]:
            yield code, row


def _group(file: LedgerFile, number: int) -> Tuple[str, Optional[int]]:
    """Return the group's id and its size."""
    text = file.text_of(schema.GROUP, number)
    if not text:
        return "", None
    described = json.loads(text)
    return described["id"], described["size"]
