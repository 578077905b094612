"""DDP under torchrun whose batches come from DataLoader workers."""

import gc
import os

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):  # type: ignore[type-arg]
    """Sixteen rows; in one way of breaking, one of another length."""

    def __len__(self) -> int:
        """Tell how many."""
        return 16

    def __getitem__(self, index: int) -> Tensor:
        """Return one."""
        return torch.ones(9 if WAY == "ddp" and index == 9 else 10) * index


@tolerant
def main() -> None:
    """Train two steps."""
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model = DistributedDataParallel(ToyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, batch in enumerate(DataLoader(Rows(), batch_size=8, num_workers=2)):  # way: ddp
        loss = model(batch + data(rank)).pow(2).mean()
        spoil(rank, step)
        loss.backward()
        optimizer.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    del model, optimizer, loss
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
