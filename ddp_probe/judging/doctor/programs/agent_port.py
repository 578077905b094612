"""Tells the other ranks of a launch of torchrun at which port rank 0 listens, with the token of the meeting, or says what rank 0 has told."""

import json
import os
import sys

from ddp_probe.judging.doctor.programs._agent_store import share_port
from ddp_probe.judging.doctor.programs._say import end_with_parent, say, stage


def main(path: str) -> None:
    """Ask the store; the file holds the arguments of share_port as JSON."""
    with open(path, encoding="utf-8") as file:
        task = json.load(file)
    with stage("store"):
        port, token = share_port(**task)
    say(port=port, token=token)
    os._exit(0)  # the store's threads end with the process


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
