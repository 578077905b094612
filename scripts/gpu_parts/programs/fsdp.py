"""Nothing is wrong: the parameters are sharded over the ranks, and the model trains."""

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, LOCAL_RANK, PATIENCE, leave, own_card, small_model, train
from torch.distributed.fsdp import FullyShardedDataParallel


def main() -> None:
    """Shard and train."""
    if DEVICE == "cuda":
        torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    model = FullyShardedDataParallel(small_model(), device_id=own_card())
    train(model, own_card())
    del model
    leave()


if __name__ == "__main__":
    main()
