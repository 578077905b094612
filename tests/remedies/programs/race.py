"""One side of a race for a checkpoint: `race.py save PAUSE` saves in a loop until the file stop is there, `race.py load COUNT MET` loads.

Each checkpoint consists of tensors filled with one number, the count of the save: a load that finds two numbers has read a mixture.
"""

import json
import os
import sys
import time

import torch

PATH = "last.pth"
PARTS = 6
NUMBERS = 1 << 16


def save(pause):
    """Save until the other side is through."""
    count = 0
    while not os.path.exists("stop"):
        count += 1
        torch.save({"part%d" % part: torch.full((NUMBERS,), float(count)) for part in range(PARTS)}, PATH)
        time.sleep(pause)
    return {"saves": count}


def load(count, enough):
    """Load so many times, and on until so many different checkpoints were met; tell how many failed, how many were mixtures, how many were met."""
    while not os.path.exists(PATH):
        time.sleep(0.01)
    failed, mixed, met, kinds = 0, 0, set(), {}
    began = time.monotonic()
    loads = 0
    while loads < count or len(met) < enough:
        loads += 1
        try:
            state = torch.load(PATH, map_location="cpu")
        except Exception as exc:
            failed += 1
            kinds[type(exc).__name__] = kinds.get(type(exc).__name__, 0) + 1
            continue
        numbers = {float(number) for part in state.values() for number in (part.min(), part.max())}
        mixed += len(numbers) > 1 or len(state) != PARTS
        met |= numbers
    seconds = round(time.monotonic() - began, 1)
    return {"loads": loads, "failed": failed, "mixed": mixed, "met": len(met), "seconds": seconds, "kinds": kinds}


if __name__ == "__main__":
    print(json.dumps(save(float(sys.argv[2])) if sys.argv[1] == "save" else load(int(sys.argv[2]), int(sys.argv[3]))))
