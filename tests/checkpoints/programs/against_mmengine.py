"""Saves checkpoints of a real model through mmengine, and loads each by the lines that `checkpoint --against` prints.

Prints one JSON object: for each case the exit code, the page, and whether load_state_dict(strict=True) failed before and passed after.
"""

import contextlib
import io
import json
import sys
import warnings
from typing import Any, Dict, List

import torch
from mmengine.model import BaseModel
from mmengine.runner.checkpoint import save_checkpoint
from torch import nn

from ddp_probe import cli
from ddp_probe.traced.facts import placement
from ddp_probe.traced.record import recorder

warnings.simplefilter("ignore")


class Detector(BaseModel):
    """A model with a backbone, a norm with buffers, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = "tensor") -> Any:
        """Do nothing: nobody trains it."""
        return inputs


def saved(state: Dict[str, Any], path: str) -> None:
    """Save as mmengine's CheckpointHook does, with meta and a history that weights_only refuses."""
    from mmengine.logging import HistoryBuffer

    meta = {"mmengine_version": "0.10.7", "epoch": 12, "iter": 4800}
    save_checkpoint({"meta": meta, "state_dict": state, "message_hub": {"loss": HistoryBuffer([1.0], [1])}}, path)


def applied(page: str, model: nn.Module) -> bool:
    """Execute the lines that the page prints, with the model at hand; load_state_dict is strict by default."""
    lines = [line.strip() for line in page.splitlines() if line.startswith(("    state = ", "    model.load_state_dict"))]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    exec("\n".join(lines), {"torch": torch, "model": model})
    return bool(lines) and any(not torch.equal(before[name], value) for name, value in model.state_dict().items())


def strict(model: nn.Module, state: Dict[str, Any]) -> bool:
    """Tell whether the state fits as it is."""
    try:
        model.load_state_dict(state)
    except RuntimeError:
        return False
    return True


def shown(*arguments: str) -> List[Any]:
    """Run the command; its exit code and page."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = cli.main(["checkpoint", *arguments])
    return [code, out.getvalue()]


def main() -> None:
    """Try each way in which names differ, against the model's list and against another checkpoint."""
    torch.manual_seed(1)
    model = Detector()
    with open("digest.json", "wb") as stream:
        stream.write(recorder.model_lines(placement.snapshot(model)[1]))
    own = model.state_dict()
    saved(own, "own.pth")
    ways = {
        "same": own,
        "wrapped": {"module." + name: value for name, value in own.items()},
        "compiled": {"module._orig_mod." + name: value for name, value in own.items()},
        "renamed": {name.replace("backbone.", "model.stem.", 1): value for name, value in own.items()},
        "inner": {"net.model." + name: value for name, value in own.items()},
    }
    found = {}
    for way, state in ways.items():
        saved({name: value + 1 for name, value in state.items()}, way + ".pth")
        for other in ("digest.json", "own.pth"):
            code, page = shown(way + ".pth", "--against", other)
            fresh = Detector()
            found["%s %s" % (way, other)] = [code, page, strict(fresh, state), way != "same" and applied(page, fresh)]
    other = nn.Linear(3, 3).state_dict()
    saved(other, "other.pth")
    found["other own.pth"] = [*shown("other.pth", "--against", "own.pth"), False, False]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
