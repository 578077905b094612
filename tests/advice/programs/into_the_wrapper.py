"""A state of the bare model is loaded into the wrapper."""

import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap, then load."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(TinyModel())
    model.load_state_dict(TinyModel().state_dict())
    print("loaded", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
