"""mmengine loads a checkpoint of a narrower model without strict: it prints what does not match, keeps the first weights and trains on.

Command: python 11_size_mismatch_silent.py
Root cause to name: checkpoint_vs_code_mismatch; the job ends well, and nothing of the checkpoint is in it.
"""

import torch
from mmengine.runner import load_checkpoint
from pieces import TinyModel, batches, say, train_step


def main() -> None:
    """Fine-tune what was never loaded."""
    torch.save({"state_dict": TinyModel(width=16).state_dict()}, "last.pth")
    model = TinyModel(width=32)
    load_checkpoint(model, "last.pth", map_location="cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(3):
        loss = train_step(model, optimizer, inputs, targets)
    say(0, "training finished, loss %.4f" % loss)


if __name__ == "__main__":
    main()
