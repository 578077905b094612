"""set_device of CUDA and .cuda() without an argument, on a host without CUDA."""

import os

import torch
from pieces import TinyModel


def main() -> None:
    """Choose the card, move the model."""
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    model = TinyModel().cuda()
    print("model on %s" % next(model.parameters()).device.type, flush=True)


if __name__ == "__main__":
    main()
