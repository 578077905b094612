"""One byte of a tensor in the checkpoint was damaged on its way: it loads without a word, and the training starts from a wrong weight.

Command: python 06_flipped_byte.py
Root cause to name: checkpoint_file_bad; the checksum that the zip file keeps of the tensor does not match.
"""

from pathlib import Path

import torch
from pieces import TinyModel, batches


def damaged_on_its_way(path: str) -> None:
    """Save a model and damage the highest byte of one weight, of a unit that these inputs reach."""
    torch.manual_seed(0)
    model = TinyModel()
    torch.save(model.state_dict(), path)
    weight = model.head.weight.detach().numpy().tobytes()
    data = bytearray(Path(path).read_bytes())
    data[data.index(weight) + 3] ^= 0x41
    Path(path).write_bytes(data)


def main() -> None:
    """Load and evaluate."""
    damaged_on_its_way("best.pth")
    model = TinyModel()
    model.load_state_dict(torch.load("best.pth", map_location="cpu"))
    for step, (inputs, targets) in enumerate(batches(3)):
        print("eval %d: error %.3g" % (step, (model(inputs) - targets).abs().mean().item()), flush=True)


if __name__ == "__main__":
    main()
