"""Asks the vendor's tool for the state of the cards, in a child with a time limit, and reads what it prints: documented forms as data, no other."""

import csv
import importlib
import json
import re
import shutil
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ddp_probe.doctor import children
from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator
from ddp_probe.shared.masks import masked
from ddp_probe.shared.schema import CardLoad, CardsState
from ddp_probe.wording.text import say

MOST = 64
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MIB = 1 << 20
# The bits of nvmlClocksEventReasons for a card that runs slower than requested.
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
    loads = [_of_row(head, columns, row) for row in rows if len(row) == len(head)]
    if "uuid" in head and len(texts) > 1:
        by_uuid = {row[head.index("uuid")]: card for row, card in zip(rows, loads)}
        for uuid, pid, used in (row for row in _table(texts[1])[1:] if len(row) == 3):
            if uuid in by_uuid and pid.isdigit() and len(by_uuid[uuid].processes) < MOST:
                by_uuid[uuid].processes[pid] = _bytes(used, "[MiB]")
    return loads


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
    match = _NUMBER.match(text) if isinstance(text, str) else None
    return float(match.group()) if match else None


def _bytes(text: str, head: str) -> Optional[int]:
    """Return a size whose unit is in the cell or in the head of its column."""
    number = _number(text)
    unit = next((factor for name, factor in _UNITS.items() if name in text or name in head), 1)
    return None if number is None else int(number * unit)


def _json(texts: Sequence[str]) -> List[CardLoad]:
    loads = []
    for name, fields in json.loads(texts[0]).items():
        if name.startswith("card"):
            heat = [_number(value) for key, value in fields.items() if key.startswith("Temperature (Sensor")]
            card = CardLoad(index=int(name[4:]), utilisation=_number(fields.get("GPU use (%)")), temperature=max(filter(None, heat), default=None))
            card.memory, card.memory_total = (_whole(fields.get("VRAM Total %s(B)" % word)) for word in ("Used Memory ", "Memory "))
            loads.append(card)
    return loads


def _whole(text: Any) -> Optional[int]:
    return int(text) if isinstance(text, str) and text.isdigit() else None


def _npu(texts: Sequence[str]) -> List[CardLoad]:
    """Read the table of `npu-smi info`: two rows for a card, and further ones if it has several chips; then one for each process."""
    loads: Dict[str, CardLoad] = {}
    first: List[str] = []
    for cells in _cells(texts[0]):
        if len(cells) == 4 and cells[1].isdigit():  # A process.
            npu, _, chip = (cells[0] + " 0").partition(" ")
            card = loads.get("%s %s" % (npu, chip.split()[0]))
            if card is not None and len(card.processes) < MOST:
                card.processes[cells[1]] = _bytes(cells[3], "MiB")
        elif len(cells) == 3 and ":" in cells[1] and first:
            key = "%s %s" % (first[0].split()[0], cells[0].split()[0])
            loads[key] = _of_npu(len(loads), first, cells)
        elif len(cells) == 3 and cells[0][:1].isdigit():
            first = cells
    return list(loads.values())


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
    loads = []
    for row in _ROW.finditer(texts[0]):
        there = _GIGABYTES.search(row.group())
        loads.append(CardLoad(index=int(row.group(1)), utilisation=float(row.group(2)), memory_total=int(there.group(1)) << 30 if there else None))
    return loads


SECONDS = 10.0
"""How long a tool may take."""

_TEXT = 4000
_DOCUMENTED = ("csv", "json", "npu")
_Over = Callable[[], bool]


class CardTool:
    """The tools of this host; once a tool knows a card, only that tool is used."""

    def __init__(self, environ: Mapping[str, str], over: _Over = bool) -> None:
        self._environ, self._over = environ, over
        self._tools: List[Tuple[Accelerator, str]] = list(_on_path(environ))

    def ask(self) -> CardsState:
        """Return the state of the cards now."""
        if not self._tools:
            return CardsState(problem="No tool of a vendor is on PATH.")
        answers = []
        for accelerator, path in self._tools:
            answers.append(self._answer(accelerator, path))
            if answers[-1].cards:
                self._tools = [(accelerator, path)]
                break
        return next((cards_state for cards_state in answers if cards_state.cards or cards_state.text), answers[0])

    def _answer(self, accelerator: Accelerator, path: str) -> CardsState:
        state = CardsState(tool=accelerator.smi)
        if accelerator.name == "cuda":
            state.cards = _from_nvml()
            if state.cards:
                state.tool = "nvml"
                return state
        texts: List[str] = []
        for arguments in accelerator.smi_state or ((),):
            printed = children.output([path, *arguments], self._environ, SECONDS, self._over)
            if printed.code != 0 and not texts:
                why = printed.why or say("ended with exit code {code}", code=printed.code or 0)
                state.problem = str(say("{tool} {why}.", tool=accelerator.smi, why=why))
                state.text = masked(printed.text, _TEXT)
                return state
            texts.append(printed.text if printed.code == 0 else "")
        state.cards = cards(accelerator.smi_form, texts)
        if not state.cards or accelerator.smi_form not in _DOCUMENTED:
            state.text = masked(texts[0], _TEXT)
        return state


def _on_path(environ: Mapping[str, str]) -> Iterator[Tuple[Accelerator, str]]:
    for accelerator in ACCELERATORS:
        path = shutil.which(accelerator.smi, path=environ.get("PATH")) if accelerator.smi else None
        if path:
            yield accelerator, path


class CardsOverTime:
    """Asks repeatedly, adds up, and reports what has changed."""

    def __init__(self, tool: CardTool) -> None:
        self._tool = tool
        self._looks = 0
        self._before: Optional[CardsState] = None
        self._kept: Dict[int, CardLoad] = {}  # The card as it was before, with its sums.
        self._quiet = 0

    def look(self) -> Optional[CardsState]:
        """Ask once; return what is to be written: a state that has changed, and one in sixty that has not."""
        state = self._tool.ask()
        self._looks += bool(state.cards or state.text)
        state.looks = self._looks
        for card in state.cards:
            self._add(card)
        self._quiet += 1
        due = self._quiet >= _QUIET or not self._looks & (self._looks - 1)  # After 1, 2, 4, 8 … looks: the sums are to be there.
        if self._before is not None and not due and not _differ(self._before, state):
            return None
        self._before, self._quiet = state, 0
        return state

    def _add(self, card: CardLoad) -> None:
        before = self._kept.get(card.index)
        looks = self._looks
        if card.utilisation is not None:
            mean = before.utilisation_mean if before is not None and before.utilisation_mean is not None else card.utilisation
            card.utilisation_mean = round(mean + (card.utilisation - mean) / looks, 2)
        heat = [value for value in (card.temperature, before.temperature_peak if before else None) if value is not None]
        card.temperature_peak = max(heat, default=None)
        card.throttled_looks = dict(before.throttled_looks) if before else {}
        for reason in card.throttled:
            card.throttled_looks[reason] = card.throttled_looks.get(reason, 0) + 1
        card.ecc_before = before.ecc_before if before else card.ecc
        self._kept[card.index] = card


_QUIET = 60  # Looks without a change after which a line is written anyway.
_BYTES, _SHARE, _POINTS, _DEGREES = 16 << 20, 0.01, 25.0, 10.0


def _differ(before: CardsState, now: CardsState) -> bool:
    if (before.tool, before.problem, len(before.cards)) != (now.tool, now.problem, len(now.cards)):
        return True
    return any(_card_differs(load, other) for load, other in zip(before.cards, now.cards))


def _card_differs(before: CardLoad, now: CardLoad) -> bool:
    same = ("index", "ecc", "health")
    if any(getattr(before, name) != getattr(now, name) for name in same) or before.processes.keys() != now.processes.keys():
        return True
    if (set(before.throttled) ^ set(now.throttled)) - {"power_cap"}:  # Which a busy card meets every other second.
        return True
    moved = abs((now.memory or 0) - (before.memory or 0))
    return (
        abs((now.utilisation or 0) - (before.utilisation or 0)) >= _POINTS
        or abs((now.temperature or 0) - (before.temperature or 0)) >= _DEGREES
        or (moved > _BYTES and moved > _SHARE * (before.memory or 0))
    )


def _from_nvml() -> List[CardLoad]:
    """Ask NVIDIA's library where nvidia-ml-py is installed: the same numbers, without a program."""
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
        return [_of_nvml(nvml, index) for index in range(min(nvml.nvmlDeviceGetCount(), MOST))]
    except Exception:  # not installed, no driver, or a version that lacks one of these calls: run the program instead
        return []


def _of_nvml(nvml: Any, index: int) -> CardLoad:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    card = CardLoad(index=index, memory=memory.used, memory_total=memory.total)
    card.utilisation = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    card.temperature = float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
    card.throttled = reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    card.processes = {str(process.pid): process.usedGpuMemory for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)[:MOST]}
    try:
        card.ecc = nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
    except nvml.NVMLError:  # a card without ECC
        card.ecc = None
    return card
