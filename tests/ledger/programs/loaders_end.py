"""DataLoaders that end: after the last batch, or by an exception of a row, of a worker, in a thread."""

import threading
from typing import Iterator

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Eight rows, of which the fifth raises what it is given."""

    def __init__(self, exception: "type[BaseException] | None" = None) -> None:
        self.exception = exception

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 4 and self.exception is not None:
            raise self.exception("row 4")
        return torch.ones(2)


def batches(exception: "type[BaseException] | None" = None, workers: int = 0) -> int:
    """Return how many batches of two a loader gives; what it raises is caught here."""
    count = 0
    try:
        for _ in DataLoader(Rows(exception), batch_size=2, num_workers=workers):
            count += 1
    except (ValueError, KeyboardInterrupt):
        pass
    return count


def given(loader: "Iterator[torch.Tensor]") -> int:
    """Return how many batches an iterator gives in the handling of another exception."""
    try:
        raise ValueError("of the job")
    except ValueError:
        return sum(1 for _ in loader)


def main() -> None:
    """Read."""
    dist.init_process_group("gloo")
    print(batches(), batches(ValueError), batches(), batches(KeyboardInterrupt))
    print(batches(ValueError, workers=1), given(iter(DataLoader(Rows()))))
    thread = threading.Thread(target=batches, args=(ValueError,))
    thread.start()
    thread.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
