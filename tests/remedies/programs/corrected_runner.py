"""The Runner of 01_runner_sets_cuda_device and 02_runner_wraps_cpu_model, corrected by hand: it makes its group itself and drops device_ids."""

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
