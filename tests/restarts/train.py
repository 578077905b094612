"""A small job that fails as JOB says. It saves each epoch of three steps, and goes on from the last one."""

import glob
import json
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

JOB = json.loads(os.environ["JOB"])
STEPS = 12
AT = JOB.get("at", STEPS)
if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
    AT = JOB.get("then_at", AT)


def raises(model):
    """Fail in the code."""
    raise ValueError("loss is nan")


def is_killed(model):
    """End as by the kernel."""
    os.kill(os.getpid(), signal.SIGKILL)


def fills_the_disk(model):
    """Save to a disk that has no room."""
    torch.save({"weights": torch.zeros(4096)}, "/dev/full")


def loads_a_cut_file(model):
    """Load a checkpoint whose end is missing."""
    torch.save({"weights": torch.zeros(4096)}, "whole.pth")
    with open("whole.pth", "rb") as whole, open("cut.pth", "wb") as cut:
        cut.write(whole.read()[:4000])
    torch.load("cut.pth")


def loads_a_page(model):
    """Load what a server sent in place of the file."""
    with open("page.pth", "w") as page:
        page.write("<!DOCTYPE html><html><body>404</body></html>")
    torch.load("page.pth")


def reads_badly(model):
    """Read from a file system that fails."""
    raise OSError(5, "Input/output error", "/data/train/00017.tar")


def loses_the_server(model):
    """Read from a server that goes away."""
    raise ConnectionResetError(104, "Connection reset by peer")


def calls_cuda(model):
    """Ask for a card where there is none."""
    torch.cuda.set_device(0)


def loads_other_names(model):
    """Load the state of a wrapped model into a bare one."""
    model.module.load_state_dict(model.state_dict())


def fills_the_card(model):
    """Say what torch says of a card without memory."""
    raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79 GiB total)")


def breaks_the_card(model):
    """Say what CUDA says of a card with broken memory."""
    raise RuntimeError("CUDA error: uncorrectable ECC error encountered")


def main():
    """Train on the CPU until it fails."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    kept = sorted(glob.glob("epoch_*.pth"))
    if JOB.get("saves") and kept:
        step = torch.load(kept[-1])["step"]
    while step < STEPS:
        if step == AT and dist.get_rank() == JOB.get("guilty", 0):
            globals()[JOB["does"].replace(" ", "_").lower()](model)
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        step += 1
        if JOB.get("saves") and step % 3 == 0 and dist.get_rank() == 0:
            torch.save({"step": step, "weights": model.module.state_dict()}, "epoch_%d.pth" % (step // 3))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
