"""Nothing is wrong: each rank trains on its card and loads its checkpoint."""

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, LOCAL_RANK, PATIENCE, leave, own_card, small_model, train
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Join, train, save, load."""
    if DEVICE == "cuda":
        torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    card = own_card()
    model = DistributedDataParallel(small_model().to(card), device_ids=[LOCAL_RANK] if DEVICE == "cuda" else None)
    train(model, card)
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "last.pth")
    dist.barrier()
    model.module.load_state_dict(torch.load("last.pth", map_location=card))
    del model
    leave()


if __name__ == "__main__":
    main()
