"""The checkpoint comes from a narrower model: the code was changed between saving and loading.

Command: python 11_size_mismatch.py
Root cause to name: checkpoint_vs_code_mismatch.
"""

import torch
from pieces import TinyModel


def main() -> None:
    """Load the weights of another configuration."""
    torch.save(TinyModel(width=16).state_dict(), "last.pth")
    model = TinyModel(width=32)
    model.load_state_dict(torch.load("last.pth", map_location="cpu"))


if __name__ == "__main__":
    main()
