"""The weights were saved from the DDP wrapper, so every name begins with 'module.', and the bare model does not know them.

Command: python 11_module_prefix.py
Root cause to name: module_prefix_mismatch.
"""

import torch
from pieces import TinyModel


def saved_from_the_wrapper(path: str) -> None:
    """Save what model.state_dict() answers while the model is wrapped."""
    torch.save({"module." + name: value for name, value in TinyModel().state_dict().items()}, path)


def main() -> None:
    """Load the weights of the last training."""
    saved_from_the_wrapper("last.pth")
    model = TinyModel()
    model.load_state_dict(torch.load("last.pth", map_location="cpu"))


if __name__ == "__main__":
    main()
