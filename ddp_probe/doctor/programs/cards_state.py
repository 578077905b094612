"""The child of a launcher that asks the vendor's tool: it prints a line of JSON for each answer, and ends with the launcher."""

import hashlib
import os
import signal
import socket
import time
from typing import List, Sequence

import msgspec

from ddp_probe.doctor.card_tools import CardsOverTime, CardTool

_TURN = 0.2  # Seconds between two looks at whether the launcher is still there.


def main(arguments: Sequence[str]) -> int:
    """Ask at an interval. The arguments are its seconds and the run's folder."""
    every, parent = float(arguments[0]), os.getppid()
    asked: List[int] = []
    # No exception out of the handler: while a tool is being started, it would leave the tool behind.
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))

    def over() -> bool:
        return bool(asked) or os.getppid() != parent

    cards = CardsOverTime(CardTool(os.environ, over))
    with socket.socket(socket.AF_UNIX) as alone:
        while not over():
            until = time.monotonic() + every
            if _is_alone(alone, arguments[1]):
                state = cards.look()
                if state is not None:
                    os.write(1, msgspec.json.encode(state) + b"\n")
            while time.monotonic() < until and not over():
                time.sleep(min(_TURN, every))
    return 0


def _is_alone(alone: socket.socket, folder: str) -> bool:
    """Tell whether this is the one that asks for this run on this host: a name without a file, which is free once its owner ends."""
    try:
        if not alone.getsockname():
            alone.bind("\0ddp_probe cards " + hashlib.sha256(os.fsencode(folder)).hexdigest()[:32])
    except OSError:  # another launcher of the run asks
        return False
    return True
