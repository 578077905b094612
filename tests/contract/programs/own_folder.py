"""A job beside files that are called like what the probe needs; tells which of them were executed when, and what it gets itself."""

import json
import sys

NAMES, FIRST, ANSWER = sys.argv[2].split(","), sys.argv[3].split(","), sys.argv[1]
sys.argv[1:] = ["--ok"]  # what those files accept; they end the program on anything else
EXECUTED = []  # each of them adds its name


def mine(name):
    """Import a name as a job does, and tell whether it is the file beside this program."""
    return getattr(__import__(name), "MINE", None) is True


early = [name for name in FIRST if name and mine(name)]
sys.argv[1:] = ["--nobody", "imports", "them", "now"]
before = len(EXECUTED)

import torch  # noqa: E402 - what comes before it is what is tried

torch.save({"a": 1}, "x.pt")
torch.load("x.pt")
by_others = EXECUTED[before:]
sys.argv[1:] = ["--ok"]
got = early + [name for name in NAMES if name not in early and mine(name)]
torch.load("x.pt")
with open(ANSWER, "w") as file:
    json.dump({"by others": by_others, "mine": sorted(got), "still mine": sorted(name for name in NAMES if mine(name))}, file)
