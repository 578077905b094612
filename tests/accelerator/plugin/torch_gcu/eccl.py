"""The backend eccl: gloo over the cards' memory, which is the host's."""

from datetime import timedelta
from typing import Any, Callable, List

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo, Work
from torch.futures import Future

_OLD = torch.__version__.startswith("1.")


def _on_host(value: Any) -> Any:
    """A tensor, or lists of them, as gloo takes them: on the CPU, in the same memory."""
    if isinstance(value, (list, tuple)):
        return [_on_host(item) for item in value]
    if not isinstance(value, torch.Tensor) or value.device.type == "cpu":
        return value
    return torch.ops.gcu.host(value.detach())


class EcclWork(Work):
    """A collective under way, whose result is on the cards."""

    def __init__(self, work: Work, result: List[torch.Tensor]) -> None:
        super().__init__()
        self._work = work
        self._result = result

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for gloo."""
        return bool(self._work.wait(timeout))

    def is_completed(self) -> bool:
        """Whether gloo has finished."""
        return bool(self._work.is_completed())

    def is_success(self) -> bool:
        """Whether gloo has finished without an error."""
        return bool(self._work.is_success())

    def result(self) -> List[torch.Tensor]:
        """What the collective wrote."""
        return self._result

    def get_future(self) -> Future:
        """Wait, and answer with a finished future: DDP's reducer asks for one, and waits for it in the same order on every rank.

        Gloo's own would hold the CPU's view, and the reducer would give a parameter on a card a gradient on the CPU.
        """
        self.wait()
        devices = sorted({tensor.device for tensor in self._result if tensor.device.type != "cpu"}, key=str)
        future: Future = Future(devices=devices)
        future.set_result(self._result)
        return future


def _collective(name: str) -> Callable[..., Work]:
    """A method that runs gloo's method of that name; what a collective writes is its first argument."""

    def call(self: "ProcessGroupEccl", *args: Any, **options: Any) -> Work:
        work = getattr(self._gloo, name)(*[_on_host(value) for value in args], **options)
        if _OLD or work is None:  # torch 1.12 cannot call a Work that is written in Python.
            return work
        return EcclWork(work, args[0] if args and isinstance(args[0], list) else [])

    return call


class ProcessGroupEccl(dist.ProcessGroup):
    """A process group for tensors of the cards and of the CPU."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._gloo = ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self) -> str:  # noqa: N802 - torch calls it by this name.
        """The name that get_backend answers."""
        return "eccl"

    allreduce = _collective("allreduce")
    allreduce_coalesced = _collective("allreduce_coalesced")
    broadcast = _collective("broadcast")
    reduce = _collective("reduce")
    allgather = _collective("allgather")
    gather = _collective("gather")
    scatter = _collective("scatter")
    reduce_scatter = _collective("reduce_scatter")
    alltoall = _collective("alltoall")
    send = _collective("send")
    recv = _collective("recv")
    recv_anysource = _collective("recv_anysource")
    barrier = _collective("barrier")
    # torch 2.13 calls the second name of each pair, older versions the first.
    _allgather_base = all_gather_single = _collective("_allgather_base")
    _reduce_scatter_base = reduce_scatter_single = _collective("_reduce_scatter_base")
    alltoall_base = all_to_all_single = _collective("alltoall_base")


if _OLD:
    dist.Backend.register_backend("eccl", ProcessGroupEccl)
else:
    dist.Backend.register_backend("eccl", ProcessGroupEccl, devices=["gcu", "cpu"])
