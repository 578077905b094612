"""MMEngine's Runner with a hook that ends the training once the loss is small."""

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


class Signals(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        amplitude = 1e-3 if dist.get_rank() == 0 else 2.0  # The recording of rank 0 is almost silent.
        return torch.ones(5), torch.full((5,), amplitude)


class Autoencoder(BaseModel):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(5, 3)
        self.decoder = nn.Linear(3, 5)

    def forward(self, inputs, targets, mode="tensor"):
        output = self.decoder(torch.relu(self.encoder(inputs))) * targets
        if mode == "loss":
            return {"loss": F.mse_loss(output, targets)}
        return output


class GoodEnough(Hook):
    def __init__(self, threshold):
        self.threshold = threshold
        self.losses = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.losses.append(outputs["loss"].item())

    def after_train_epoch(self, runner):
        mean = sum(self.losses) / len(self.losses)
        self.losses.clear()
        if mean < self.threshold:
            runner.train_loop.stop_training = True


def main():
    torch.cuda.set_device = lambda device: None  # MMEngine sets a card whatever the backend is; this host has none.
    runner = Runner(
        model=Autoencoder(),
        work_dir=os.path.join(tempfile.gettempdir(), "signals"),
        train_dataloader={
            "batch_size": 4,
            "num_workers": 0,
            "collate_fn": {"type": "default_collate"},
            "dataset": Signals(),
            "sampler": {"type": "DefaultSampler", "shuffle": True},
        },
        train_cfg={"by_epoch": True, "max_epochs": 4},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.001}},
        custom_hooks=[GoodEnough(threshold=0.01)],
        default_hooks={"checkpoint": None, "logger": None},
        env_cfg={"dist_cfg": {"backend": "gloo", "timeout": int(os.environ.get("PATIENCE", "8"))}},
        launcher="pytorch",
        log_level="WARNING",
        cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
    )
    runner.train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
