"""A host that stops in the middle of its fold: says `ready` before it connects, `half` once a part is sent, and then waits for its end."""

import sys
import time

from ddp_probe.cli import main
from ddp_probe.moving.gather import sender

PIECES = 3
sender.PIECE = 1000
_original = sender._pieces


def _some(file, start, end):
    for number, piece in enumerate(_original(file, start, end)):
        if number == PIECES:
            print("half", flush=True)
            time.sleep(1000)
        yield piece


if __name__ == "__main__":
    sender._pieces = _some
    print("ready", flush=True)
    sys.exit(main(["gather", *sys.argv[1:]]))
