"""The Runner of 02_runner_does_not_know_cards, corrected by hand: mmengine is told of the cards, and torch 1.12 gets no device_ids."""

import os

import mmengine.device.utils
import torch
import torch.distributed as dist
import torch_gcu
from mmengine.runner import Runner
from runner_pieces import runner_config

mmengine.device.utils.DEVICE = torch_gcu.DEVICE_TYPE


def main() -> None:
    """Train one epoch on the cards."""
    torch_gcu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("eccl")
    old = torch.__version__.startswith("1.")
    cfg = {"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None} if old else None}
    Runner(launcher="pytorch", cfg=cfg, **runner_config(env_cfg={"dist_cfg": {"backend": "eccl"}})).train()


if __name__ == "__main__":
    main()
