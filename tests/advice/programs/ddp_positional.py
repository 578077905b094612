"""DDP under another name, its device_ids without a keyword, a model that is made in the call's own line before."""

import os
from datetime import timedelta

import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817  # as most programs name it


def main() -> None:
    """Wrap a model that stays on the CPU."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    net = TinyModel()
    DDP(net, [int(os.environ["LOCAL_RANK"])])
    print("wrapped", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
