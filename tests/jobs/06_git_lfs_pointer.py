"""The repository was cloned without git-lfs: where the weights should be there is a pointer of three lines.

Command: python 06_git_lfs_pointer.py
Root cause to name: not_a_checkpoint_file; the file is a git-lfs pointer.
"""

from pathlib import Path

import torch
from pieces import TinyModel

POINTER = """version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 102540417
"""


def main() -> None:
    """Load the pretrained weights."""
    Path("pretrained.pth").write_text(POINTER, encoding="utf-8")
    model = TinyModel()
    model.load_state_dict(torch.load("pretrained.pth", map_location="cpu"))


if __name__ == "__main__":
    main()
