"""A checkpoint in the format before zip files, as many model zoos still publish them, ends too early.

Command: python 06_truncated_legacy_checkpoint.py
Root cause to name: truncated_checkpoint; the pickle part is whole, the tensors behind it are not.
"""

import os

import torch
from pieces import TinyModel


def download_cut_short(path: str) -> None:
    """Leave on disk what an interrupted download leaves."""
    torch.save(TinyModel(width=512).state_dict(), path, _use_new_zipfile_serialization=False)
    os.truncate(path, os.path.getsize(path) * 3 // 5)


def main() -> None:
    """Load what is there."""
    download_cut_short("resnet_tiny-1a2b3c4d.pth")
    model = TinyModel(width=512)
    model.load_state_dict(torch.load("resnet_tiny-1a2b3c4d.pth", map_location="cpu"))


if __name__ == "__main__":
    main()
