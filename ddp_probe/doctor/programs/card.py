"""Computes on one card, and compares with the CPU."""

import importlib
import os
import sys
from typing import Any

from ddp_probe.doctor.programs._device import device, identity, plugin, runtime_of, set_device
from ddp_probe.doctor.programs._say import end_with_parent, say, stage


def main(types: str, index: str, attribute: str, module: str) -> None:
    """Import, choose the card, compute, and copy back."""
    with stage("import"):
        torch: Any = importlib.import_module("torch")
        vendor = plugin(module)
    number = int(index)
    with stage("device"):
        card = device(torch, types, number)
    say(card=str(card))
    runtime = runtime_of(torch, vendor, attribute)
    with stage("set_device"):
        set_device(runtime, number)
    with stage("compute") as facts:
        facts.update(card=str(card), wrong=_wrong(torch, card), identity=identity(runtime, number))
    os._exit(0)  # some runtimes hang or crash at shutdown, and the card has already answered


def _wrong(torch: Any, card: Any) -> str:
    """Return what is wrong with a product of small whole numbers, which every number format of a card holds exactly."""
    left = (torch.arange(64).reshape(8, 8) % 4).float()
    expected = left @ left + 1
    computed = (left.to(card) @ left.to(card) + 1).cpu()
    differ = int((computed != expected).sum())
    return "%d of 64 numbers differ from those of the CPU" % differ if differ else ""


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
