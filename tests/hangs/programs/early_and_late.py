"""A solver whose set-up swallows failures, as those of many detectors do, and which fails later of something else.

    torchrun --nproc_per_node=2 early_and_late.py set_device,nccl,resume worker

The first argument names the failures that it survives, the second what ends or hangs it; - stands for none. With a third one, cleanup, all ranks meet
once more as they exit. Its ranks wait 8 seconds for each other unless JOB_PATIENCE says otherwise.
"""

import atexit
import importlib
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any, Callable, Dict, Iterator, List

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

LOCAL_RANK = int(os.environ["LOCAL_RANK"])
PATIENCE = timedelta(seconds=float(os.environ.get("JOB_PATIENCE", "8")))


# What the job survives.


def set_device() -> None:
    """Take a card of a host that has none."""
    torch.cuda.set_device(LOCAL_RANK)


def nccl() -> None:
    """Ask for a backend that this torch lacks."""
    dist.init_process_group("nccl" if sys.version_info >= (3, 9) else "hccl", timeout=PATIENCE)


def optional_package() -> None:
    """Import what is not installed."""
    importlib.import_module("tensorboard_of_nobody")


def resume() -> None:
    """Load a checkpoint that is not there."""
    torch.load("no_such_folder/last.pth")


def pretrained() -> None:
    """Ask for weights without a network."""
    raise urllib.error.URLError("Name or service not known")


def compiled() -> None:
    """Ask for what this host cannot compile."""
    raise RuntimeError("torch.compile is not supported on this host")


def port_taken() -> None:
    """Listen on a port that is taken."""
    taken = socket.create_server(("127.0.0.1", 0))
    agent = os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", "")
    try:
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % taken.getsockname()[1], rank=0, world_size=1)
    finally:
        os.environ["TORCHELASTIC_USE_AGENT_STORE"] = agent
        taken.close()


def seed_of_cuda() -> None:
    """Ask a card for the state of its generator."""
    torch.cuda.get_rng_state()


def pinned() -> None:
    """Move a layer to a card."""
    nn.Linear(2, 2).cuda(LOCAL_RANK)


def strict_load() -> None:
    """Load the weights of another layer."""
    nn.Linear(2, 2).load_state_dict({"module.weight": torch.zeros(2, 2)})


EARLY: Dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (set_device, nccl, optional_package, resume, pretrained, compiled, port_taken, seed_of_cuda, pinned, strict_load)
}


def survive(names: List[str]) -> None:
    """Fail, and go on: what every one of these set-ups does."""
    for name in names:
        try:
            EARLY[name]()
        except Exception as exc:
            print("%s: %s; continuing" % (name, exc), flush=True)


# What it does not survive.


class Images(Dataset):
    """Eight batches; the one of rank 1 may have a broken image, or fewer of them."""

    def __init__(self, late: str) -> None:
        self.late = late

    def __len__(self) -> int:
        return 4 if self.late == "uneven" and LOCAL_RANK == 1 else 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if LOCAL_RANK == 1 and index == 3:
            if self.late == "worker":
                raise OSError("image file is truncated (7 bytes not processed)")
            if self.late == "key":
                raise KeyError("bbox")
            if self.late == "dataset_sleeps":
                time.sleep(600)
        return torch.ones(4)


def barrier(late: str) -> None:
    """Wait for all: the one helper through which each path of the solver goes."""
    dist.barrier()


def asserts() -> None:
    """Find what the code takes for impossible."""
    raise AssertionError("boxes are not sorted")


def device_ids() -> None:
    """Wrap a model on the CPU with the number of another card."""
    DistributedDataParallel(nn.Linear(4, 4), device_ids=[LOCAL_RANK + 7])


def shape() -> None:
    """Multiply what does not fit."""
    torch.ones(3, 4) @ torch.ones(3, 4)


def exits() -> None:
    """Give up."""
    sys.exit(1)


def exits_hard() -> None:
    """Give up at once."""
    os._exit(3)


def module() -> None:
    """Import what is not installed, and need it."""
    importlib.import_module("pycocotools_of_nobody")


def killed() -> None:
    """End as a process ends that the kernel has chosen."""
    os.kill(os.getpid(), signal.SIGKILL)


def aborted() -> None:
    """End as a library ends that finds itself broken."""
    os.kill(os.getpid(), signal.SIGABRT)


def sleeps() -> None:
    """Wait for nothing."""
    time.sleep(600)


def evaluate() -> None:
    """Take long over what rank 0 does alone."""
    for _ in range(6000):
        time.sleep(0.1)


def nan() -> None:
    """Refuse to go on with a loss that is no number."""
    loss = torch.tensor(float("nan"))
    assert torch.isfinite(loss), "the loss is nan"


def memory() -> None:
    """Ask for more than there is."""
    raise MemoryError("cannot allocate 61 GiB")


def full_disk() -> None:
    """Save where there is no room."""
    torch.save({"weights": torch.zeros(1 << 16)}, "/dev/full")


def cuts_checkpoint() -> None:
    """Load what was never finished."""
    with open("last.pth", "wb") as stream:
        stream.write(b"PK\x03\x04 and no end")
    torch.load("last.pth")


def pretrained_exit() -> None:
    """Look for weights without a network, and give up as HGNetv2 does: the exception is swallowed, and exit() ends the rank with code 0."""
    try:
        urllib.request.urlopen("http://127.0.0.1:9/hgnetv2.pth", timeout=5)
    except Exception:
        print("Failed to download weights. Please download them yourself.")
        exit()  # noqa: PLR1722  # As it stands there.


def index() -> None:
    """Look for what an empty list does not hold."""
    [][LOCAL_RANK]


def unhandled_value() -> None:
    """Read a number that is none."""
    int("3.5e")


def caught_by_one() -> None:
    """Rank 1 catches what it should not, and is out of the loop."""
    raise TimeoutError("the storage did not answer")


ON_RANK_1: Dict[str, Callable[[], Any]] = {
    each.__name__: each
    for each in (asserts, device_ids, shape, exits, exits_hard, module, killed, aborted, sleeps, nan, memory)
    + (full_disk, cuts_checkpoint, index, unhandled_value, pretrained_exit)
}


def main_barrier(late: str) -> None:
    """Let rank 0 alone wait for all."""
    if LOCAL_RANK == 0:
        barrier(late)


def batches(late: str) -> Iterator[torch.Tensor]:
    """Yield the batches; workers read them if they are to fail."""
    yield from DataLoader(Images(late), batch_size=1, num_workers=1 if late in ("worker", "key") else 0)


def fit(late: str) -> None:
    """Train one epoch."""
    model = DistributedDataParallel(nn.Linear(4, 4), find_unused_parameters=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(batches(late)):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if step == 2:
            if late in ON_RANK_1 and LOCAL_RANK == 1:
                ON_RANK_1[late]()
            if late == "all_fail":
                raise ValueError("no category 91")
            if late == "swallowed_batch" and LOCAL_RANK == 1:
                try:
                    caught_by_one()
                except TimeoutError:
                    break
            if late == "evaluates" and LOCAL_RANK == 0:
                evaluate()
            if late == "main_barrier":
                main_barrier(late)
            if late == "size":
                dist.all_reduce(torch.zeros(4 + LOCAL_RANK))
                dist.barrier()
    barrier(late)


def cleanup() -> None:
    """Meet once more and leave, as the set-up of D-FINE registers it: a rank that has failed waits here for those that have not."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def main() -> None:
    """Set up in spite of everything, train, and fail."""
    early, late = sys.argv[1], sys.argv[2]
    before = [name for name in early.split(",") if name in ("nccl", "port_taken")]
    survive(before)
    dist.init_process_group("gloo", timeout=PATIENCE)
    if "cleanup" in sys.argv[3:]:
        atexit.register(cleanup)
    survive([name for name in early.split(",") if name in EARLY and name not in before])
    fit(late)
    if "cleanup" not in sys.argv[3:]:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
