"""The line of device.state has what torch itself says at that moment, of the cards that the job has used and of no other."""

import glob
import json
import os
from typing import Any, Dict

import torch
import torch.distributed as dist
from stage import BACKEND, DEVICE, PATIENCE, leave, own_card


def last_state() -> Dict[str, Any]:
    """Return the last line of device.state of this process."""
    (log,) = glob.glob(os.path.join(os.environ["DDP_PROBE_RUN"], "rank*.%d.jsonl" % os.getpid()))
    with open(log) as file:
        return [json.loads(line) for line in file if '"event":"device.state"' in line][-1]


def main() -> None:
    """Hold 64 MiB more at each save, and compare."""
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    assert DEVICE == "cuda" or not torch.cuda.is_initialized()
    card, kept = own_card(), []
    for number in range(3):
        kept.append(torch.ones(16 << 20, device=card))
        torch.save({"number": number}, "number.pth")
        devices = last_state().get("devices", [])
        if DEVICE == "cuda":
            (one,) = devices
            assert one["allocated"] == torch.cuda.memory_allocated(card), (one, torch.cuda.memory_allocated(card))
            assert one["reserved"] == torch.cuda.memory_reserved(card), (one, torch.cuda.memory_reserved(card))
        else:
            assert devices == [], devices
            assert not torch.cuda.is_initialized(), "the probe has initialised CUDA"
    leave()


if __name__ == "__main__":
    main()
