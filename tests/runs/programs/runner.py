"""mmengine's Runner over two ranks on CPU: it fails in init_dist, fails in wrap_model, or trains, as the first argument says."""

import gc
import os
import signal
import sys
import time
from contextlib import suppress

import torch
import torch.distributed as dist
from mmengine.dataset import DefaultSampler
from mmengine.model import BaseModel
from mmengine.runner import Runner

WAY = sys.argv[1]


class Model(BaseModel):
    """One layer."""

    def __init__(self):
        """Build it."""
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, inputs, mode="tensor"):
        """Return the loss while training."""
        found = self.layer(inputs)
        return {"loss": found.pow(2).mean()} if mode == "loss" else found


def config():
    """Return what the Runner needs."""
    wrapper = {"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}}
    return {
        "model": Model(),
        "work_dir": "work",
        "train_dataloader": {
            "batch_size": 2,
            "num_workers": 0,
            "sampler": {"type": DefaultSampler},
            "dataset": [{"inputs": torch.ones(4)} for _ in range(8)],
            "collate_fn": {"type": "default_collate"},
        },
        "train_cfg": {"by_epoch": True, "max_epochs": 1},
        "optim_wrapper": {"optimizer": {"type": torch.optim.SGD, "lr": 0.01}},
        "env_cfg": {"dist_cfg": {"backend": "gloo"}},
        "default_scope": "mmengine",
        "log_level": "CRITICAL",
        "cfg": wrapper if WAY == "trains" else {},
    }


def main():
    """Build the Runner, and train where it lets us."""
    if WAY == "swallows":
        with suppress(Exception):
            dist.init_process_group("gloo")
            torch.cuda.set_device(int(dist.get_rank()))  # swallowed
    elif WAY != "init_dist":
        dist.init_process_group("gloo")
    runner = Runner(launcher="pytorch", **config())  # builds
    runner.train()
    del runner  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


def wait_for_both(mark="failed"):
    """Wait until both ranks have failed, and outlive torchrun's SIGTERM until this one has written its last line."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(mark + os.environ["RANK"], "w"):
        pass
    for _ in range(600):
        if all(os.path.exists(mark + rank) for rank in "01"):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    try:
        main()
    finally:
        wait_for_both()
