"""The configuration of one short run, of names and numbers alone, as a file has it."""

from typing import Any, Dict

from mmengine.registry import DATASETS, MODELS
from runner_pieces import Rows, TinyRegressor

MODELS.register_module(module=TinyRegressor)
DATASETS.register_module(module=Rows)


def plain_config() -> Dict[str, Any]:
    """Answer what Runner.from_cfg reads."""
    return {
        "model": {"type": "TinyRegressor"},
        "work_dir": "work_dirs",
        "train_dataloader": {
            "batch_size": 4,
            "num_workers": 0,
            "sampler": {"type": "DefaultSampler", "shuffle": False},
            "dataset": {"type": "Rows"},
            "collate_fn": {"type": "default_collate"},
        },
        "train_cfg": {"by_epoch": True, "max_epochs": 1},
        "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.01}},
        "env_cfg": {"dist_cfg": {"backend": "gloo", "timeout": 20}},
        "default_scope": "mmengine",
        "launcher": "pytorch",
    }
