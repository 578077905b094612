"""Nothing is wrong in this one: mmengine's Runner trains two ranks on CPU, with device_ids=None and a process group made by the program.

Command: torchrun --nproc_per_node=2 00_healthy_runner.py
Root cause to name: none; a diagnosis that finds something here is mistaken.
"""

import gc

import torch.distributed as dist
from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch."""
    dist.init_process_group("gloo")
    wrapper = {"type": "MMDistributedDataParallel", "device_ids": None}
    Runner(launcher="pytorch", cfg={"model_wrapper_cfg": wrapper}, **runner_config()).train()
    gc.collect()  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
