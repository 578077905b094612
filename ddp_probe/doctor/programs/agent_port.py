"""torchrun's agent may hold MASTER_PORT: then its store has the port at which rank 0 waits, and the token of the meeting."""

import importlib
import json
import os
import sys
from datetime import timedelta
from typing import Any, Tuple

from ddp_probe.doctor.programs._say import end_with_parent, say, stage
from ddp_probe.shared.regular_files import open_text


def share_port(address: str, port: int, key: str, seconds: float, meet_at: int = 0, token: str = "") -> Tuple[int, str]:
    """Tell the others the port and the token, or return what rank 0 has said."""
    distributed: Any = importlib.import_module("torch.distributed")
    store = distributed.TCPStore(address, port, None, False, timedelta(seconds=seconds), False)
    if meet_at:
        store.set(key, "%d %s" % (meet_at, token))
        return meet_at, token
    number, _, token = store.get(key).decode().partition(" ")
    return int(number), token


# Tells the other ranks of a launch of torchrun at which port rank 0 listens, with the token of the meeting, or says what rank 0 has said.


def main(path: str) -> None:
    """Ask the store; the file holds the arguments of share_port as JSON."""
    with open_text(path) as file:
        task = json.load(file)
    with stage("store"):
        port, token = share_port(**task)
    say(port=port, token=token)
    os._exit(0)  # the store's threads end with the process


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
