"""A state of the bare model is loaded into the wrapper."""

import gc

import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap, then load."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(TinyModel())
    model.load_state_dict(TinyModel().state_dict())
    print("loaded", flush=True)
    del model  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
