"""Reads process groups from torch's tables, without a collective or a device."""

import sys
from typing import Any, Dict, Optional, Tuple

from ddp_probe.traced.facts.describe import bases, class_contents, class_name, overridden, qualname

_RANK = ("getRank", "__getattribute__", "__getattr__")


def _c10d() -> Any:
    return sys.modules.get("torch.distributed.distributed_c10d")


def default_group() -> Tuple[str, Optional[int], Optional[int]]:
    """Return backend, rank and size of the default group, or an empty string and two Nones if there is none."""
    c10d = _c10d()
    if c10d is None or not c10d.is_initialized():
        return "", None, None
    group = c10d._get_default_group()
    # torch's method looks for these in a class of the job's.
    rank = None if overridden(type(group), _RANK) else int(c10d.ProcessGroup.rank(group))
    return _kind(c10d, group), rank, _size(c10d, group)


def _size(c10d: Any, group: Any) -> Optional[int]:
    world = getattr(c10d, "_world", None)
    ranks = held(world.pg_group_ranks if world is not None else getattr(c10d, "_pg_group_ranks", None), group)
    return len(ranks) if type(ranks) is dict else None


def group_backends(group: Any) -> Dict[str, str]:
    """Return the backend per device type; torch before 2.0 has one for all, under the key 'all'."""
    c10d = _c10d()
    if c10d is None or not c10d.is_initialized():
        return {}
    group = c10d._get_default_group() if group is None else group
    text = held(getattr(getattr(c10d, "_world", None), "pg_backend_config", None), group)
    if type(text) is str and ":" in text:  # "cpu:gloo,cuda:nccl"
        pairs = [pair.partition(":") for pair in text.split(",")]
        return {device: backend for device, _, backend in pairs if backend != "undefined"}
    kind = _kind(c10d, group)
    return {"all": kind} if kind else {}


def group_name(group: Any) -> str:
    """Describe a group: an empty string for the default one, else its backend and size."""
    c10d = _c10d()
    if group is None or c10d is None:
        return ""
    if not is_group(group):
        return qualname(type(group)).rpartition(".")[2]
    return "%s of %s" % (_kind(c10d, group) or qualname(type(group)).rpartition(".")[2], _size(c10d, group) or "?")


def group_description(group: Any) -> str:
    """Return the description that the job has given a group; older torches have none."""
    description = class_contents(_c10d().ProcessGroup).get("group_desc")
    if type(description) is not property or description.fget is None or not is_group(group):
        return ""
    return str(description.fget(group))


def is_group(group: Any) -> bool:
    """Return whether this is a process group, by its type alone: any other check could run the job's code."""
    for base in bases(type(group)):
        name = class_name(base)
        if name.rpartition(".")[2] == "ProcessGroup" and name.startswith("torch."):
            return True
    return False


def held(table: Any, group: Any) -> Any:
    """Return what a table of torch's holds for a group, which is found by identity: a class of the job may have a hash of its own."""
    for key, value in list(table.items()) if type(table) is dict else ():
        if key is group:
            return value
    return None


def _kind(c10d: Any, group: Any) -> str:
    """Read the backend's name from torch's map; get_backend would raise in a rank outside the group."""
    world = getattr(c10d, "_world", None)
    kinds = held(world.pg_map if world is not None else getattr(c10d, "_pg_map", None), group)
    return str(kinds[0]) if kinds else ""
