"""The accelerator that the remedies use: what DDP_PROBE_DEVICE names, or what the job has imported."""

import sys
from typing import Any, List, NamedTuple, Optional

from ddp_probe.shared import settings
from ddp_probe.shared.accelerators import Accelerator, by_device_type
from ddp_probe.shared.schema import Card
from ddp_probe.traced.facts.accelerator_state import accelerators
from ddp_probe.traced.facts.describe import namespace


class Cards(NamedTuple):
    """The cards of one accelerator, and the module that controls them."""

    device_type: str
    runtime: Any  # torch.gcu, or the vendor's module.
    backends: List[str]

    def seen(self) -> int:
        """Return how many cards this process sees."""
        return int(self.runtime.device_count())

    def now(self) -> int:
        """Return the current card."""
        return int(self.runtime.current_device())

    def set(self, index: int) -> None:
        """Make a card the current one."""
        self.runtime.set_device(index)


def usable_cuda() -> bool:
    """Tell whether torch itself can use an NVIDIA or AMD card."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def wanted() -> str:
    """Return the device type that DDP_PROBE_DEVICE names; empty if any will do."""
    return str(settings.get(settings.DEVICE)).lower()


def cards() -> Optional[Cards]:
    """Return the accelerator of this process, or None. A vendor's module that the job has not imported is not imported."""
    named = wanted()
    for card in accelerators():
        record = by_device_type(card.name)
        if record is None or card.name in ("cuda", "rocm", "mps"):
            continue
        if named and named not in (card.name, card.device_type, *record.device_types):
            continue
        usable = _usable(record, card, named)
        if usable is not None:
            return usable
    return None


def _usable(record: Accelerator, card: Card, named: str) -> Optional[Cards]:
    candidates: List[Any] = [namespace("torch").get(record.torch_attribute), *(sys.modules.get(name) for name in record.modules)]
    for runtime in candidates:
        if all(callable(getattr(runtime, name, None)) for name in ("is_available", "device_count", "current_device", "set_device")):
            if not runtime.is_available() or int(runtime.device_count()) < 1:
                return None
            return Cards(named if named in record.device_types else card.device_type, runtime, list(record.backends))
    return None


def own_index(session: Any, chosen: Cards) -> Optional[int]:
    """Return the card of this rank: the card that the job has set, else LOCAL_RANK; None if there is no such card, or nothing names one."""
    if session.last("set_device"):
        return chosen.now()
    rank_info = session.process.rank_info
    if rank_info.local_rank is None and rank_info.world_size in (None, 1):
        return chosen.now()
    index: Optional[int] = rank_info.local_rank
    return index if index is not None and 0 <= index < chosen.seen() else None


def no_card(chosen: Cards) -> str:
    """Say why own_index found no card."""
    return "nothing tells which of the %d %s cards is this rank's own" % (chosen.seen(), chosen.device_type)
