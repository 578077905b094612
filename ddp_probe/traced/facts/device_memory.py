"""What the allocators of this process's devices have counted on the host. No device is initialised, asked or waited for.

Only a module that says by itself that the job has initialised it is looked at, and of it only the functions that read the allocator's counters:
memory_stats, or memory_allocated and its kin if a vendor has none. Never mem_get_info, which asks the driver.
"""

from types import FunctionType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import DeviceMemory
from ddp_probe.traced.facts._cards import initialised_runtimes

_CARDS = 16
_STATS = {
    "allocated": "allocated_bytes.all.current",
    "allocated_peak": "allocated_bytes.all.peak",
    "reserved": "reserved_bytes.all.current",
    "reserved_peak": "reserved_bytes.all.peak",
    "retries": "num_alloc_retries",
    "out_of_memory": "num_ooms",
}
_CALLS = {
    "allocated": "memory_allocated",
    "allocated_peak": "max_memory_allocated",
    "reserved": "memory_reserved",
    "reserved_peak": "max_memory_reserved",
}


def device_memory(current: str = "", *, ask: bool = True) -> Tuple[str, List[DeviceMemory]]:
    """Return the current device, and the memory of each device that this process has used.

    Which device is current is a matter of the thread: one of ours is not to ask, and takes what the job's was.
    """
    current = "" if ask else current
    found: List[DeviceMemory] = []
    for device_type, held in initialised_runtimes():
        try:
            index = _whole(_call(held, "current_device")) if ask else _index(current, device_type)
            if index is not None and not current:
                current = "%s:%d" % (device_type, index)
            found += _used(device_type, held, index)
        except ours(Exception):
            continue  # A vendor's module may fail here; the others are still worth a line.
    return current, found


def _used(device_type: str, held: Dict[str, Any], current: Optional[int]) -> Iterator[DeviceMemory]:
    count = _whole(_call(held, "device_count")) or 0
    for index in range(min(count, _CARDS)):
        numbers = _numbers(held, index)
        if index == current or any(numbers.values()):
            yield DeviceMemory(device="%s:%d" % (device_type, index), **numbers)


def _numbers(held: Dict[str, Any], index: int) -> Dict[str, Optional[int]]:
    nested = _call(held, "memory_stats_as_nested_dict", index)  # memory_stats sorts two hundred names, which takes longer than all the rest.
    if nested:
        return {field: _whole(_at(nested, name)) for field, name in _STATS.items()}
    flat = _call(held, "memory_stats", index)
    if flat:
        return {field: _whole(flat.get(name)) for field, name in _STATS.items()}
    return {field: _whole(_call(held, name, index)) for field, name in _CALLS.items()}


def _index(device: str, device_type: str) -> Optional[int]:
    kind, _, number = device.partition(":")
    return int(number) if kind == device_type and number.isdigit() else None


def _at(nested: Any, name: str) -> Any:
    for part in name.split("."):
        nested = nested.get(part) if isinstance(nested, dict) else None
    return nested


def _call(held: Dict[str, Any], name: str, *arguments: int) -> Any:
    function: Optional[Callable[..., Any]] = held.get(name)
    return function(*arguments) if type(function) is FunctionType else None


def _whole(value: Any) -> Optional[int]:
    return value if type(value) is int else None
