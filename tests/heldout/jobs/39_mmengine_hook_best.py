"""MMEngine's Runner with a hook that notes the best loss."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import Dataset


class Points(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        rank = dist.get_rank()
        # Rank 1 has harder samples at the end.
        far = 40.0 if rank == 1 and index > 24 else 1.0
        return torch.ones(4), torch.full((2,), far)


class Regressor(BaseModel):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))

    def forward(self, inputs, targets, mode="tensor"):
        output = self.body(inputs)
        if mode == "loss":
            return {"loss": F.l1_loss(output, targets)}
        return output


class BestLoss(Hook):
    def __init__(self):
        self.best = float("inf")

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        loss = outputs["loss"].item()
        if loss < self.best:
            self.best = loss
            runner.message_hub.update_scalar("best", loss)
            dist.barrier()


def main():
    torch.cuda.set_device = lambda device: None  # MMEngine sets a card whatever the backend is; this host has none.
    Runner(
        model=Regressor(),
        work_dir=os.path.join(tempfile.gettempdir(), "points"),
        train_dataloader={
            "batch_size": 4,
            "num_workers": 0,
            "collate_fn": {"type": "default_collate"},
            "dataset": Points(),
            "sampler": {"type": "DefaultSampler", "shuffle": False},
        },
        train_cfg={"by_epoch": False, "max_iters": 12},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.05}},
        custom_hooks=[BestLoss()],
        default_hooks={"checkpoint": None, "logger": None},
        env_cfg={"dist_cfg": {"backend": "gloo", "timeout": int(os.environ.get("PATIENCE", "8"))}},
        launcher="pytorch",
        log_level="WARNING",
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
    ).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
