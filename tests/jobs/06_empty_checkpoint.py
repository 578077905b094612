"""The checkpoint has no bytes at all: the program that wrote it was stopped right after it opened the file.

Command: python 06_empty_checkpoint.py
Root cause to name: truncated_checkpoint; the file's size is 0.
"""

from pathlib import Path

import torch
from pieces import TinyModel


def main() -> None:
    """Resume from what is there."""
    Path("latest.pth").touch()
    model = TinyModel()
    model.load_state_dict(torch.load("latest.pth", map_location="cpu"))


if __name__ == "__main__":
    main()
