"""The backend is nccl on a host without CUDA: this build of torch has none (2.13 for CPU), or has one that finds no card (1.12.1).

Command: torchrun --nproc_per_node=2 10_nccl_without_cuda.py
Root cause to name: backend_not_available where NCCL is not built in, no_gpu_visible where it is.
"""

from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    """Join the process group, or so it was meant."""
    dist.init_process_group("nccl", timeout=timedelta(seconds=8))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
