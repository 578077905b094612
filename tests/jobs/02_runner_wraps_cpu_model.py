"""An mmengine Runner past init_dist: wrap_model sends the model to get_device(), the CPU here, and passes device_ids=[LOCAL_RANK] all the same.

The program makes the process group itself, which the Runner accepts: that is how people go round torch.cuda.set_device. Nothing is patched.

Command: torchrun --nproc_per_node=2 02_runner_wraps_cpu_model.py
Root cause to name: device_ids_given_for_cpu_run, on every rank, in Runner.wrap_model.
"""

import torch.distributed as dist
from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch with gloo, or so it was meant."""
    dist.init_process_group(backend="gloo")
    runner = Runner(launcher="pytorch", **runner_config())
    runner.train()


if __name__ == "__main__":
    main()
