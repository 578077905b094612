"""Reads what vendors' tools print of their cards. Forms that a vendor documents are read as data; of any other nothing is guessed.

`csv` is that of nvidia-smi, hl-smi and xpu-smi, `json` that of rocm-smi, `npu` the table of npu-smi, `rows` the lines of efsmi with a card's load.
"""

import csv
import json
import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from ddp_probe.shared.schema import CardLoad

MOST = 64
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MIB = 1 << 20
# The bits of nvmlClocksEventReasons that tell of a card that is slower than it was asked to be.
REASONS = {0x4: "power_cap", 0x8: "hw_slowdown", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "power_brake"}
# What a column's name begins with, as the tools name it.
_COLUMNS = {
    "index": ("index", "DeviceId"),
    "utilisation": ("utilization.gpu", "utilization.aip", "GPU Utilization"),
    "memory": ("memory.used", "GPU Memory Used"),
    "memory_total": ("memory.total",),
    "temperature": ("temperature.gpu", "temperature.aip", "GPU Core Temperature"),
    "ecc": ("ecc.errors.uncorrected.volatile.total",),
    "throttled": ("clocks_throttle_reasons.active",),
}


def cards(form: str, texts: Sequence[str]) -> List[CardLoad]:
    """Return the cards in what the tool's commands have printed; none if it is not of this form."""
    read: Optional[Callable[[Sequence[str]], List[CardLoad]]] = {"csv": _csv, "json": _json, "npu": _npu, "rows": _rows}.get(form)
    try:
        return read(texts)[:MOST] if read is not None else []
    except (ValueError, KeyError, AttributeError, TypeError):
        return []


def reasons(bits: int) -> List[str]:
    """Return the words for the bits of a lowered clock."""
    return [word for bit, word in REASONS.items() if bits & bit]


def _csv(texts: Sequence[str]) -> List[CardLoad]:
    head, *rows = _table(texts[0])
    columns = {field: place for field, names in _COLUMNS.items() for place, name in enumerate(head) if name.startswith(names)}
    found = [_of_row(head, columns, row) for row in rows if len(row) == len(head)]
    if "uuid" in head and len(texts) > 1:
        by_uuid = {row[head.index("uuid")]: card for row, card in zip(rows, found)}
        for uuid, pid, used in (row for row in _table(texts[1])[1:] if len(row) == 3):
            if uuid in by_uuid and pid.isdigit() and len(by_uuid[uuid].processes) < MOST:
                by_uuid[uuid].processes[pid] = _bytes(used, "[MiB]")
    return found


def _table(text: str) -> List[List[str]]:
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]


def _of_row(head: Sequence[str], columns: Dict[str, int], row: Sequence[str]) -> CardLoad:
    card = CardLoad(index=int(row[columns["index"]]))
    for field, place in columns.items():
        if field.startswith("memory"):
            setattr(card, field, _bytes(row[place], head[place]))
        elif field == "throttled":
            card.throttled = reasons(int(row[place], 16)) if row[place].startswith("0x") else []
        elif field != "index":
            number = _number(row[place])
            setattr(card, field, number if number is None or field != "ecc" else int(number))
    return card


def _number(text: Any) -> Optional[float]:
    found = _NUMBER.match(text) if isinstance(text, str) else None
    return float(found.group()) if found else None


def _bytes(text: str, head: str) -> Optional[int]:
    """Return a size whose unit is in the cell or in the head of its column."""
    number = _number(text)
    unit = next((factor for name, factor in _UNITS.items() if name in text or name in head), 1)
    return None if number is None else int(number * unit)


def _json(texts: Sequence[str]) -> List[CardLoad]:
    found = []
    for name, told in json.loads(texts[0]).items():
        if name.startswith("card"):
            heat = [_number(value) for key, value in told.items() if key.startswith("Temperature (Sensor")]
            card = CardLoad(index=int(name[4:]), utilisation=_number(told.get("GPU use (%)")), temperature=max(filter(None, heat), default=None))
            card.memory, card.memory_total = (_whole(told.get("VRAM Total %s(B)" % word)) for word in ("Used Memory ", "Memory "))
            found.append(card)
    return found


def _whole(text: Any) -> Optional[int]:
    return int(text) if isinstance(text, str) and text.isdigit() else None


def _npu(texts: Sequence[str]) -> List[CardLoad]:
    """Read the table of `npu-smi info`: two rows for a card, and further ones if it has several chips; then one for each process."""
    found: Dict[str, CardLoad] = {}
    first: List[str] = []
    for cells in _cells(texts[0]):
        if len(cells) == 4 and cells[1].isdigit():  # A process.
            npu, _, chip = (cells[0] + " 0").partition(" ")
            card = found.get("%s %s" % (npu, chip.split()[0]))
            if card is not None and len(card.processes) < MOST:
                card.processes[cells[1]] = _bytes(cells[3], "MiB")
        elif len(cells) == 3 and ":" in cells[1] and first:
            key = "%s %s" % (first[0].split()[0], cells[0].split()[0])
            found[key] = _of_npu(len(found), first, cells)
        elif len(cells) == 3 and cells[0][:1].isdigit():
            first = cells
    return list(found.values())


def _cells(text: str) -> Iterator[List[str]]:
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def _of_npu(index: int, first: Sequence[str], second: Sequence[str]) -> CardLoad:
    numbers = [float(number) for number in _NUMBER.findall(second[2])]  # Load, memory used and there, HBM used and there.
    used, there = numbers[3:5] if len(numbers) > 4 and numbers[4] else numbers[1:3]
    card = CardLoad(index=index, utilisation=numbers[0], memory=int(used * _MIB), memory_total=int(there * _MIB))
    card.temperature = _number((first[2].split() + ["", ""])[1])
    card.health = "" if first[1] == "OK" else first[1][:MOST]
    return card


_ROW = re.compile(r"^\*\s+(\d+)\s+\S+\s*\|.*\|.*?(\d+(?:\.\d+)?)%", re.M)
_GIGABYTES = re.compile(r"\|\s*(\d+)G\b")


def _rows(texts: Sequence[str]) -> List[CardLoad]:
    """Read lines such as `* 3  T20 | … | 32G  Disable | 85.0%  W2800 *`."""
    found = []
    for row in _ROW.finditer(texts[0]):
        there = _GIGABYTES.search(row.group())
        found.append(CardLoad(index=int(row.group(1)), utilisation=float(row.group(2)), memory_total=int(there.group(1)) << 30 if there else None))
    return found
