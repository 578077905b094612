"""A healthy MMEngine training on simulated cards, one rank each: the template for jobs. Argument: a folder for work and results.

MMEngine 0.10.7 does not know gcu. Two lines of the job teach it, as a vendor's fork of MMEngine does: get_device() reads
mmengine.device.utils.DEVICE, and init_dist calls torch.cuda.set_device whatever the backend. wrap_model then passes
device_ids=[LOCAL_RANK], which torch 2.13 takes for any accelerator; DDP of torch 1.12 fails on it in the first forward.
"""

import gc
import json
import os
import sys
from pathlib import Path

import mmengine.device.utils
import torch
import torch.distributed as dist
import torch_gcu
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import Dataset

mmengine.device.utils.DEVICE = torch_gcu.DEVICE_TYPE
torch.cuda.set_device = torch_gcu.set_device


WRAPPER = None if torch_gcu.DEVICE_TYPE == "gcu" else {"type": "MMDistributedDataParallel", "device_ids": None}


class Points(Dataset):
    """Sixteen points and their classes."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return {"inputs": torch.full((4,), index / 16), "label": index % 3}


class Model(BaseModel):
    """A layer, a normalisation with running statistics, a layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, inputs, label, mode="tensor"):
        """Compute the loss, or the scores."""
        out = self.layers(inputs)
        return {"loss": nn.functional.cross_entropy(out, label)} if mode == "loss" else out


def describe(runner):
    """What the rank ended with."""
    model = runner.model.module
    return {
        "wrapper": type(runner.model).__name__,
        "device_ids": runner.model.device_ids,
        "devices": sorted({str(parameter.device) for parameter in model.parameters()}),
        "backend": dist.get_backend(),
        "iterations": runner.iter,
        "parameters": {name: parameter.tolist() for name, parameter in model.named_parameters()},
        "bytes_on_card": [torch_gcu.memory_allocated(card) for card in range(torch_gcu.device_count())],
    }


def main(folder):
    """Train, note what came of it, and leave in the order that gloo survives."""
    runner = Runner(
        model=Model(),
        cfg={"model_wrapper_cfg": WRAPPER},
        work_dir=str(folder / "work"),
        train_dataloader={
            "batch_size": 2,
            "sampler": {"type": "DefaultSampler", "shuffle": True},
            "dataset": Points(),
            "collate_fn": {"type": "default_collate"},
        },
        train_cfg={"by_epoch": True, "max_epochs": 2},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
        launcher="pytorch",
        env_cfg={"dist_cfg": {"backend": "eccl"}},
        randomness={"seed": 0},
    )
    runner.train()
    (folder / ("rank%s.json" % os.environ["RANK"])).write_text(json.dumps(describe(runner)), encoding="utf-8")
    del runner
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
