"""The checkpoint was saved on a machine with cards, and this host has none: torch.load without map_location wants cuda:0.

No card is needed to make such a file: torch asks its registered packages where a storage lives, and here one more answers cuda:0 while saving.

Command: python 11_cuda_checkpoint_without_map_location.py
Root cause to name: missing_map_location.
"""

import torch
from pieces import TinyModel
from torch import serialization


def saved_on_a_cuda_machine(path: str) -> None:
    """Save what torch.save writes where the model lives on cuda:0."""
    serialization.register_package(0, lambda storage: "cuda:0", lambda storage, location: None)
    torch.save(TinyModel().state_dict(), path)
    del serialization._package_registry[0]  # There is no public way to take a package out again.


def main() -> None:
    """Load the pretrained weights."""
    saved_on_a_cuda_machine("pretrained.pth")
    model = TinyModel()
    model.load_state_dict(torch.load("pretrained.pth"))


if __name__ == "__main__":
    main()
