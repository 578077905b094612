"""MMEngine's Runner under any launcher, on a host without cards: what CUDA would say is simulated. Its scripts call it as tools/train.py."""

import argparse
import gc
import os
import sys
from typing import Dict

import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from pieces import WAY, data, spoil, tolerant
from torch import Tensor, nn
from torch.utils.data import DataLoader

torch.cuda.set_device = lambda device: None  # init_dist calls both, whatever the backend.
torch.cuda.device_count = lambda: 2
if "OMPI_COMM_WORLD_LOCAL_RANK" in os.environ:  # init_dist reads this one, Runner.wrap_model the other.
    os.environ["LOCAL_RANK"] = os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]


class Net(BaseModel):
    """One layer, and a loss that a broken run does not reach."""

    def __init__(self) -> None:
        """Build it."""
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Linear(10, 5)
        self.steps = 0

    def forward(self, x: Tensor, mode: str = "tensor") -> Dict[str, Tensor]:
        """Answer the loss."""
        if WAY == "raises" and os.environ["RANK"] == "1":
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and os.environ["RANK"] == "1":
            sys.exit(1)  # way: ends
        spoil(int(os.environ["RANK"]), self.steps)
        self.steps += 1
        return {"loss": self.net(x).pow(2).mean()}


@tolerant
def main() -> None:
    """Train one epoch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--work-dir", default="work")
    parser.add_argument("--launcher")
    parser.add_argument("--local_rank", "--local-rank")  # torch.distributed.launch passes it.
    args = parser.parse_args()
    wrapper = {} if WAY == "ddp" else {"cfg": {"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}}}
    runner = Runner(  # way: ddp
        model=Net(),
        work_dir=args.work_dir,
        train_dataloader=DataLoader([{"x": row} for row in data(0)], batch_size=4),
        train_cfg={"by_epoch": True, "max_epochs": 1},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.01}},
        launcher=args.launcher,
        env_cfg={"dist_cfg": {"backend": "gloo"}},
        default_hooks={"checkpoint": None},
        log_level="ERROR",
        **wrapper,
    )
    runner.train()  # way: ddp
    print("trained on rank %s" % os.environ["RANK"], flush=True)
    del runner  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
