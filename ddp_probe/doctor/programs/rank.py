"""One rank of a small job: forms a process group, runs collectives and a DDP step, and says each stage before and after."""

import importlib
import os
import statistics
import sys
import time
from typing import Any, NamedTuple

from ddp_probe.doctor.programs._device import device, identity, plugin, runtime_of, set_device
from ddp_probe.doctor.programs._say import end_with_parent, stage

_MEGABYTES, _ROUNDS = 4, 5


class _Job(NamedTuple):
    torch: Any
    dist: Any
    rank: int
    world: int
    device: Any


def main(types: str, attribute: str, module: str, backend: str) -> None:
    """Go through the stages; the first exception ends the rank."""
    with stage("import"):
        torch: Any = importlib.import_module("torch")
        vendor = plugin(module)
        dist = importlib.import_module("torch.distributed")
    card = _card(torch, types, attribute, vendor)
    with stage("init_process_group"):
        dist.init_process_group(backend)
    job = _Job(torch, dist, dist.get_rank(), dist.get_world_size(), card)
    _collectives(job)
    with stage("ddp"):
        _ddp_step(job)
    with stage("bandwidth") as facts:
        facts.update(bytes=_MEGABYTES << 20, seconds=_all_reduce_seconds(job))
    with stage("destroy_process_group"):
        dist.destroy_process_group()
    os._exit(0)  # gloo of torch 2.13 may abort a rank while the interpreter exits


def _card(torch: Any, types: str, attribute: str, vendor: Any) -> Any:
    index = int(os.environ["LOCAL_RANK"])
    runtime = runtime_of(torch, vendor, attribute)
    with stage("set_device") as facts:
        chosen = device(torch, types, index)
        if types != "cpu":
            set_device(runtime, index)
            found_identity = identity(runtime, index)
            facts.update(card=str(chosen), identity=found_identity)
    return chosen


def _collectives(job: _Job) -> None:
    with stage("all_reduce"):
        numbers = job.torch.full((4,), float(job.rank + 1), device=job.device)
        job.dist.all_reduce(numbers)
        _expect(job, numbers, job.world * (job.world + 1) / 2)
    with stage("broadcast"):
        numbers = job.torch.full((4,), float(job.rank), device=job.device)
        job.dist.broadcast(numbers, src=job.world - 1)
        _expect(job, numbers, job.world - 1)
    with stage("barrier"):
        job.dist.barrier()


def _expect(job: _Job, got: Any, wanted: float) -> None:
    """Raise if an element is not what the collective must return."""
    if not job.torch.equal(got.cpu(), job.torch.full(got.shape, float(wanted))):
        raise ValueError("the result is %s, and has to be %s everywhere" % (got.cpu().tolist(), wanted))


def _ddp_step(job: _Job) -> None:
    """Train one step on another batch in each rank: the gradient has to be the mean of all, and the parameters the same on all."""
    job.torch.manual_seed(job.rank)
    layer = job.torch.nn.Linear(4, 1).to(job.device)
    model = job.torch.nn.parallel.DistributedDataParallel(layer, device_ids=_device_ids(job))
    steps = job.torch.optim.SGD(model.parameters(), lr=0.5)
    model(job.torch.full((1, 4), float(job.rank + 1), device=job.device)).sum().backward()
    _expect(job, layer.weight.grad, (job.world + 1) / 2)
    steps.step()
    mine = layer.weight.detach().clone()
    theirs = mine.clone()
    job.dist.broadcast(theirs, src=0)
    if not job.torch.allclose(mine.cpu(), theirs.cpu()):
        raise ValueError("the parameters are %s after one step, and %s on rank 0" % (mine.cpu().tolist(), theirs.cpu().tolist()))


def _device_ids(job: _Job) -> Any:
    """Return what DDP takes here: torch 1.x fails in the first forward on the device_ids of anything but CUDA."""
    if job.device.type == "cpu" or (job.device.type != "cuda" and job.torch.__version__.startswith("1.")):
        return None
    return [job.device.index]


def _all_reduce_seconds(job: _Job) -> float:
    """Return the median of a few rounds; reading one number waits for the card."""
    numbers = job.torch.zeros(_MEGABYTES << 18, device=job.device)
    took = []
    for _ in range(_ROUNDS + 1):  # the first call sets up connections
        started = time.perf_counter()
        job.dist.all_reduce(numbers)
        numbers[0].item()
        took.append(time.perf_counter() - started)
    return statistics.median(took[1:])


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
