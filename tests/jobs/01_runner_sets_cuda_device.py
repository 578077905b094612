"""An mmengine Runner with launcher='pytorch' on a host without CUDA: init_dist calls torch.cuda.set_device, whatever the backend.

Command: torchrun --nproc_per_node=2 01_runner_sets_cuda_device.py
Root cause to name: cuda_call_on_non_cuda_host, on every rank, in mmengine.dist.utils._init_dist_pytorch.
"""

from mmengine.runner import Runner
from runner_pieces import runner_config


def main() -> None:
    """Train one epoch with gloo, or so it was meant."""
    runner = Runner(launcher="pytorch", **runner_config())
    runner.train()


if __name__ == "__main__":
    main()
