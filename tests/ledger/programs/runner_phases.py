"""mmengine's Runner trains two epochs, validates after each, and saves a checkpoint; then it tests. Each phase is in the ledger."""

import os
import sys
from pathlib import Path

import torch.distributed as dist
from mmengine.evaluator import BaseMetric
from mmengine.runner import Runner

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jobs"))
from runner_pieces import runner_config  # the jobs' folder is not on the path before


class Count(BaseMetric):
    """Counts rows."""

    def process(self, data_batch, data_samples):
        """Take one batch."""
        self.results.append(len(data_samples))

    def compute_metrics(self, results):
        """Return the sum."""
        return {"rows": sum(results)}


os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["FREE_PORT"])
dist.init_process_group("gloo")
config = runner_config()
loops = {name + "_dataloader": config["train_dataloader"] for name in ("val", "test")}
config.update(
    loops, train_cfg={"by_epoch": True, "max_epochs": 2}, val_cfg={}, test_cfg={}, val_evaluator={"type": Count}, test_evaluator={"type": Count}
)
runner = Runner(launcher="pytorch", cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}}, **config)
runner.train()  # the line of the training
runner.test()  # the line of the test
