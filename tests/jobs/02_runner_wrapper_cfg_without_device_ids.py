"""The configuration names the wrapper and leaves device_ids out, as one is advised to: mmengine puts [LOCAL_RANK] in as a default argument.

Command: torchrun --nproc_per_node=2 02_runner_wrapper_cfg_without_device_ids.py
Root cause to name: device_ids_given_for_cpu_run, on every rank; device_ids=None has to be written out in model_wrapper_cfg.
"""

import torch.distributed as dist
from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch with gloo, or so it was meant."""
    dist.init_process_group(backend="gloo")
    wrapper = {"type": "MMDistributedDataParallel", "find_unused_parameters": False, "broadcast_buffers": False}
    runner = Runner(launcher="pytorch", cfg={"model_wrapper_cfg": wrapper}, **runner_config())
    runner.train()


if __name__ == "__main__":
    main()
