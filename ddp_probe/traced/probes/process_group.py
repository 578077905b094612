"""init_process_group, destroy_process_group and new_group: backend, ranks, address, timeout."""

import datetime
import os
from typing import Any, Dict, List, Optional

from ddp_probe.shared import schema
from ddp_probe.shared.masks import masked
from ddp_probe.traced.facts.describe import class_name, describe
from ddp_probe.traced.facts.process_groups import default_group, group_backends, group_name, is_group
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe

_MOST = 1 << 31  # a larger number is not a rank and does not fit into an event


class ProcessGroup(Probe):
    """Records the three; the first of them also turns a forked or spawned child into a rank."""

    name = "process_group"
    targets = (
        "torch.distributed.distributed_c10d:init_process_group",
        "torch.distributed.distributed_c10d:destroy_process_group",
        "torch.distributed.distributed_c10d:new_group",
    )
    events = (schema.InitProcessGroup, schema.DestroyProcessGroup, schema.NewGroup)
    always = True
    states = True
    cost = "Two lines per call."

    def before(self, call: Call) -> None:
        """Report init_process_group to the lifecycle, which may promote a silent child; then record as any probe does."""
        if call.target.qualname == "init_process_group":
            self.session.group_called(call.arguments())
            patch = self.session.patches.get(str(call.target))
            if patch is not None:
                patch.calls = max(patch.calls, 1)  # If it was promoted, it counts from nothing, and this call is its first.
        if self.session.switch.on:
            super().before(call)
            if call.target.qualname == "init_process_group":
                self.session.collectives.open()

    def begin(self, call: Call) -> Optional[schema.Event]:
        """Record what was asked for."""
        given = call.arguments()
        if call.target.qualname == "new_group":
            return _new_group(given)
        if call.target.qualname == "destroy_process_group":
            return schema.DestroyProcessGroup(group=group_name(given.get("group")))
        return _init(given)

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Event]:
        """Record what came of it."""
        if isinstance(begun.event, schema.NewGroup):
            return schema.NewGroup(member=is_group(result), backend=next(iter(group_backends(result).values()), ""))
        if isinstance(begun.event, schema.DestroyProcessGroup):
            return None
        backend, rank, size = default_group()
        self.session.rank_known(rank, size)
        return schema.InitProcessGroup(backend=backend, backends=group_backends(None), group_rank=rank, group_size=size)


def _init(given: Dict[str, Any]) -> schema.InitProcessGroup:
    backend, method, store = given.get("backend"), given.get("init_method"), given.get("store")
    url = "env://" if store is None else ""
    if issubclass(type(method), str):
        url = masked(str.__str__(method), 500)
    return schema.InitProcessGroup(
        backend="" if backend is None else describe(backend).strip("'\""),
        init_method=url,
        timeout=_seconds(given.get("timeout")),
        store="" if store is None else class_name(store),
        given_rank=_whole(given.get("rank")),
        given_world_size=_whole(given.get("world_size")),
        device_id="" if given.get("device_id") is None else describe(given["device_id"]),
        master_addr=os.environ.get("MASTER_ADDR", ""),
        master_port=os.environ.get("MASTER_PORT", ""),
        already_initialised=default_group()[2] is not None,
    )


def _new_group(given: Dict[str, Any]) -> schema.NewGroup:
    ranks: Any = given.get("ranks")
    listed: List[int] = [rank for rank in ranks if type(rank) is int] if type(ranks) in (list, tuple, range) else []
    backend = given.get("backend")
    return schema.NewGroup(
        ranks=listed[:1024],
        size=len(listed) if ranks is not None else default_group()[2],
        backend="" if backend is None else describe(backend).strip("'\""),
        timeout=_seconds(given.get("timeout")),
    )


def _seconds(value: Any) -> Optional[float]:
    return value.total_seconds() if type(value) is datetime.timedelta else None


def _whole(value: Any) -> Optional[int]:
    return value if type(value) is int and 0 <= value < _MOST else None


PROBE = ProcessGroup
