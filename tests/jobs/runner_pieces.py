"""What the programs around mmengine's Runner have in common: a model, a dataset, and the configuration of one short run."""

from typing import Any, Dict

import torch
from mmengine.dataset import DefaultSampler
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.utils.data import Dataset


class TinyRegressor(BaseModel):
    """A model that the Runner can train."""

    def __init__(self, width: int = 16) -> None:
        """Build both parts."""
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, inputs: Tensor, targets: Tensor, mode: str = "tensor") -> Any:
        """Answer the loss while training, the prediction otherwise."""
        outputs = self.head(self.backbone(inputs))
        return {"loss": nn.functional.mse_loss(outputs, targets)} if mode == "loss" else outputs


class Rows(Dataset):
    """Sixteen rows of synthetic data."""

    def __len__(self) -> int:
        """Answer the number of rows."""
        return 16

    def __getitem__(self, index: int) -> Dict[str, Tensor]:
        """Answer one row."""
        inputs = torch.full((8,), index / 16.0)
        return {"inputs": inputs, "targets": inputs.sum(dim=0, keepdim=True)}


def runner_config(**extra: Any) -> Dict[str, Any]:
    """Answer the keyword arguments of a Runner that trains for one epoch on gloo."""
    loader = {
        "batch_size": 4,
        "num_workers": 0,
        "sampler": {"type": DefaultSampler, "shuffle": False},
        "dataset": Rows(),
        "collate_fn": {"type": "default_collate"},
    }
    config = {
        "model": TinyRegressor(),
        "work_dir": "work_dirs",
        "train_dataloader": loader,
        "train_cfg": {"by_epoch": True, "max_epochs": 1},
        "optim_wrapper": {"optimizer": {"type": torch.optim.SGD, "lr": 0.01}},
        "default_hooks": {"logger": {"type": "LoggerHook", "interval": 1}, "checkpoint": {"type": "CheckpointHook", "interval": 1}},
        "env_cfg": {"dist_cfg": {"backend": "gloo", "timeout": 20}},
        "default_scope": "mmengine",
    }
    return {**config, **extra}
