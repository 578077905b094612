"""A command in a terminal of its own, as a person sees it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import Dict, List, Tuple


def in_terminal(args: List[str], env: Dict[str, str], columns: int = 100, lines: int = 40) -> Tuple[int, str]:
    """Run ``python -m ddp_probe ARGS`` in a terminal; return the exit code and what it was sent."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    modes = termios.tcgetattr(follower)
    modes[1] &= ~termios.ONLCR
    termios.tcsetattr(follower, termios.TCSANOW, modes)
    process = subprocess.Popen([sys.executable, "-m", "ddp_probe", *args], stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    seen = []
    while True:
        try:
            piece = os.read(leader, 1 << 16)
        except OSError:  # Linux says so when the last writer has left.
            break
        if not piece:
            break
        seen.append(piece)
    os.close(leader)
    return process.wait(60), b"".join(seen).decode("utf-8", "surrogateescape")
