"""MMEngine's Runner with a hook that summarises the gradients on the main rank."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import Dataset


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((3,), index / 64), torch.tensor([1.0])


class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, inputs, targets, mode="tensor"):
        if mode == "loss":
            return {"loss": F.mse_loss(self.layers(inputs), targets)}
        return self.layers(inputs)


class GradientSummary(Hook):
    def __init__(self, interval):
        self.interval = interval

    def summarise(self, model):
        norms = torch.stack([p.detach().norm() for p in model.parameters()])
        dist.all_reduce(norms, op=dist.ReduceOp.MAX)
        return norms

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if not self.every_n_train_iters(runner, self.interval):
            return
        if is_main_process():
            runner.logger.info("largest norms: %s", self.summarise(runner.model))


def main():
    torch.cuda.set_device = lambda device: None  # MMEngine sets a card whatever the backend is; this host has none.
    Runner(
        model=Model(),
        work_dir=os.path.join(tempfile.gettempdir(), "numbers"),
        train_dataloader={
            "batch_size": 4,
            "num_workers": 0,
            "collate_fn": {"type": "default_collate"},
            "dataset": Numbers(),
            "sampler": {"type": "DefaultSampler", "shuffle": True},
        },
        train_cfg={"by_epoch": True, "max_epochs": 2},
        optim_wrapper={"optimizer": {"type": "Adam", "lr": 0.001}},
        custom_hooks=[GradientSummary(interval=4)],
        default_hooks={"checkpoint": None, "logger": None},
        env_cfg={"dist_cfg": {"backend": "gloo", "timeout": int(os.environ.get("PATIENCE", "8"))}},
        launcher="pytorch",
        log_level="WARNING",
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
    ).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
