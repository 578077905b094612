"""Nothing is wrong in this one: mmengine's Runner trains four ranks over eccl, each on its card, as a vendor's fork of mmengine would.

mmengine does not know the cards by itself: its DEVICE names the one that models are sent to, and init_dist calls torch.cuda.set_device.

Command: torchrun --nproc_per_node=4 00_healthy_runner_on_cards.py
Root cause to name: none; a diagnosis that finds something here is mistaken.
"""

import gc

import mmengine.device.utils
import torch
import torch.distributed as dist
import torch_gcu
from mmengine.runner import Runner
from runner_pieces import runner_config

mmengine.device.utils.DEVICE = torch_gcu.DEVICE_TYPE
torch.cuda.set_device = torch_gcu.set_device


def train() -> None:
    """Train one epoch; DDP of torch 1.12 takes device_ids for CUDA alone."""
    old = torch.__version__.startswith("1.")
    cfg = {"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None} if old else None}
    Runner(launcher="pytorch", cfg=cfg, **runner_config(env_cfg={"dist_cfg": {"backend": "eccl"}}, randomness={"seed": 0})).train()


def main() -> None:
    """Train, and leave with nothing left on the card."""
    train()
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
