"""Holds POSIX locks on checkpoints while it saves and loads; tells whether another process still finds them held, at each step."""

import fcntl
import json
import subprocess
import sys

import torch

ASK = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def held(path):
    """Ask another process, which the lock keeps out."""
    return subprocess.run([sys.executable, "-S", "-c", ASK, path], stderr=subprocess.DEVNULL, check=False).returncode != 0


told = []
torch.save({"a": torch.zeros(1)}, "last.pt")
file = open("last.pt", "r+b")  # noqa: SIM115 - closing it would let go of the lock
fcntl.lockf(file, fcntl.LOCK_EX)
told.append(("locked", held("last.pt")))
file.seek(0)
torch.load(file, map_location="cpu")
told.append(("loaded from the open file", held("last.pt")))
try:
    torch.load("last.pt", pickle_module=json, weights_only=True)
except (RuntimeError, TypeError, AttributeError):  # torch 1.12 opens it first
    told.append(("refused before it was opened", held("last.pt")))
torch.load("last.pt", map_location=lambda storage, location: (told.append(("during a load", held("last.pt"))), storage)[1])
with open(sys.argv[1], "w") as answer:
    json.dump(told, answer)
