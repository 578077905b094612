"""What torch knows as torch.gcu: the current card, how many there are, what they hold."""

import os
from typing import Dict, List, Optional, Union

import torch

from torch_gcu._library import library

DEVICE_TYPE = "xla" if torch.__version__.startswith("1.") else "gcu"

_Device = Union[None, int, str, torch.device]


def is_available() -> bool:
    """Whether a card is visible; like a vendor's call, it does not say whether one is in use."""
    return device_count() > 0


def device_count() -> int:
    """Eight, or as many as TOPS_VISIBLE_DEVICES names."""
    return int(library.gcu_device_count())


def is_initialized() -> bool:
    """Whether this process has set a card or allocated on one."""
    return bool(library.gcu_is_initialized())


def init() -> None:
    """Initialise, as the first allocation does by itself."""
    library.gcu_initialize()


def current_device() -> int:
    """The number of the current card; asking initialises, as with CUDA."""
    init()
    return int(library.gcu_current_device())


def set_device(device: _Device) -> None:
    """Make a card the current one of this thread."""
    library.gcu_set_device(_index(device))


def _index(device: _Device) -> int:
    """The number of a card, checked here because no exception crosses ctypes."""
    index: Optional[int] = device if isinstance(device, int) else None if device is None else torch.device(device).index
    if index is None:
        return int(library.gcu_current_device())
    if not 0 <= index < device_count():
        raise RuntimeError("GCU error: invalid device ordinal %d, %d cards are visible" % (index, device_count()))
    return index


class device:  # noqa: N801 - torch's own name for it.
    """Another current card within a block."""

    def __init__(self, device: _Device) -> None:
        self._index = _index(device)

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self._index)

    def __exit__(self, *exc: object) -> None:
        set_device(self._before)


def synchronize(device: _Device = None) -> None:
    """Return at once: the cards compute as they are called."""
    _index(device)


def empty_cache() -> None:
    """Return at once: nothing is cached."""


def get_device_name(device: _Device = None) -> str:
    """Name a card."""
    return "Simulated GCU %d" % _index(device)


def memory_allocated(device: _Device = None) -> int:
    """Bytes that tensors hold on a card now."""
    return int(library.gcu_memory_allocated(_index(device)))


def max_memory_allocated(device: _Device = None) -> int:
    """The most bytes that tensors have held on a card."""
    return int(library.gcu_max_memory_allocated(_index(device)))


def memory_stats(device: _Device = None) -> Dict[str, int]:
    """What the allocator has counted, by CUDA's names; the cards cache nothing, so that what is reserved is what is allocated."""
    now, most = memory_allocated(device), max_memory_allocated(device)
    found = {"%s_bytes.all.%s" % (kind, name): value for kind in ("allocated", "reserved") for name, value in (("current", now), ("peak", most))}
    return {**found, "num_alloc_retries": 0, "num_ooms": 0}


# Operators draw from the CPU's generator, so that a seed gives the CPU's digits.


def manual_seed(seed: int) -> None:
    """Do nothing more: torch.manual_seed has seeded the CPU's generator."""


manual_seed_all = manual_seed


def get_rng_state(device: _Device = None) -> torch.Tensor:
    """The state of the generator that every card draws from."""
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device: _Device = None) -> None:
    """Set the state of the generator that every card draws from."""
    torch.set_rng_state(state)


def get_amp_supported_dtype() -> List[torch.dtype]:
    """Types for autocast, which torch asks for and the cards do not support."""
    return [torch.float16, torch.bfloat16]


_forked = False


def _is_in_bad_fork() -> bool:
    """Whether a card was in use before this process was forked off, as vendors tell it."""
    return _forked


def _after_fork() -> None:
    global _forked
    _forked = is_initialized()


os.register_at_fork(after_in_child=_after_fork)
