"""Asks the vendor's tool for the state of the cards: in a child with a time limit, so that a driver that hangs holds nobody up."""

import importlib
import shutil
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ddp_probe.judging.doctor import card_forms, children
from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator
from ddp_probe.shared.masking.secrets import masked
from ddp_probe.shared.schema import CardLoad, CardsState

SECONDS = 10.0
"""How long a tool may take."""

_TEXT = 4000
_DOCUMENTED = ("csv", "json", "npu")
_Over = Callable[[], bool]


class CardTool:
    """The tools of this host; the first that knows a card is asked from then on."""

    def __init__(self, environ: Mapping[str, str], over: _Over = bool) -> None:
        self._environ, self._over = environ, over
        self._tools: List[Tuple[Accelerator, str]] = list(_on_path(environ))

    def ask(self) -> CardsState:
        """Return the state of the cards now."""
        if not self._tools:
            return CardsState(problem="No tool of a vendor is on PATH.")
        answers = []
        for known, path in self._tools:
            answers.append(self._answer(known, path))
            if answers[-1].cards:
                self._tools = [(known, path)]
                break
        return next((one for one in answers if one.cards or one.text), answers[0])

    def _answer(self, known: Accelerator, path: str) -> CardsState:
        state = CardsState(tool=known.smi)
        if known.name == "cuda":
            state.cards = _from_nvml()
            if state.cards:
                state.tool = "nvml"
                return state
        texts: List[str] = []
        for arguments in known.smi_state or ((),):
            code, said = children.output([path, *arguments], self._environ, SECONDS, self._over)
            if code != 0 and not texts:
                state.problem = "%s %s." % (known.smi, "did not answer within %d s" % SECONDS if code is None else "ended with exit code %d" % code)
                state.text = masked(said, _TEXT)
                return state
            texts.append(said if code == 0 else "")
        state.cards = card_forms.cards(known.smi_form, texts)
        if not state.cards or known.smi_form not in _DOCUMENTED:
            state.text = masked(texts[0], _TEXT)
        return state


def _on_path(environ: Mapping[str, str]) -> Iterator[Tuple[Accelerator, str]]:
    for known in ACCELERATORS:
        path = shutil.which(known.smi, path=environ.get("PATH")) if known.smi else None
        if path:
            yield known, path


class CardsOverTime:
    """Asks again and again, adds up, and tells what has changed."""

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
    return any(_card_differs(one, other) for one, other in zip(before.cards, now.cards))


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
    """Ask NVIDIA's own library where nvidia-ml-py is installed: the same numbers, without a program."""
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
        return [_of_nvml(nvml, index) for index in range(min(nvml.nvmlDeviceGetCount(), card_forms.MOST))]
    except Exception:  # not installed, no driver, or a version without one of these calls: the program is asked
        return []


def _of_nvml(nvml: Any, index: int) -> CardLoad:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    card = CardLoad(index=index, memory=memory.used, memory_total=memory.total)
    card.utilisation = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    card.temperature = float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
    card.throttled = card_forms.reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    card.processes = {str(one.pid): one.usedGpuMemory for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle)[: card_forms.MOST]}
    try:
        card.ecc = nvml.nvmlDeviceGetTotalEccErrors(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
    except nvml.NVMLError:  # a card without ECC
        card.ecc = None
    return card
