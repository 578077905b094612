"""MMEngine's Runner with a hook that shares the accuracy of each class that was seen."""

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


class Animals(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        label = index // 2 % 3
        if dist.get_rank() == 1 and index >= 24:
            label = index // 2 % 2  # No third class in this part.
        return torch.full((6,), float(label)), torch.tensor(label)


class Classifier(BaseModel):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, inputs, labels, mode="tensor"):
        logits = self.layers(inputs)
        return {"loss": F.cross_entropy(logits, labels)} if mode == "loss" else logits


class ClassCounts(Hook):
    def __init__(self, interval):
        self.interval = interval
        self.seen = {}

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        for label in data_batch[1].tolist():
            self.seen.setdefault(label, torch.zeros(1)).add_(1)
        if self.every_n_train_iters(runner, self.interval):
            self.publish(runner)

    def publish(self, runner):
        while self.seen:
            label, count = self.seen.popitem()
            dist.all_reduce(count)
            runner.message_hub.update_scalar("count/%d" % label, count.item())


def main():
    torch.cuda.set_device = lambda device: None  # MMEngine sets a card whatever the backend is; this host has none.
    Runner(
        model=Classifier(),
        work_dir=os.path.join(tempfile.gettempdir(), "animals"),
        train_dataloader={
            "batch_size": 4,
            "num_workers": 0,
            "collate_fn": {"type": "default_collate"},
            "dataset": Animals(),
            "sampler": {"type": "DefaultSampler", "shuffle": False},
        },
        train_cfg={"by_epoch": False, "max_iters": 6},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
        custom_hooks=[ClassCounts(interval=3)],
        default_hooks={"checkpoint": None, "logger": None},
        env_cfg={"dist_cfg": {"backend": "gloo", "timeout": int(os.environ.get("PATIENCE", "8"))}},
        launcher="pytorch",
        log_level="WARNING",
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
    ).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
