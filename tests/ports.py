"""Hands out TCP ports, each once, that no other process of this machine takes before the test's job binds them.

The kernel gives ports of its own range to whoever asks for any: a port of that range that was free a moment ago may be gone when the job, which
first imports torch, binds it. These lie below the range, and below the ports that the remedy `rendezvous` derives; a lock on a file keeps other test
runs away.
"""

import fcntl
import itertools
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Iterator, List

_PORTS = range(10000, 20000)
_KEPT = 200  # Ports whose lock is kept; the jobs of earlier ones have ended.

_locks: List[int] = []


def _candidates() -> Iterator[int]:
    """Yield the ports in a circle, from a place that each process draws for itself."""
    for number in itertools.count(random.Random(os.urandom(8)).randrange(len(_PORTS))):
        yield _PORTS[number % len(_PORTS)]


_next = _candidates()


def free_port() -> int:
    """Return a port that nothing listens on."""
    folder = Path(tempfile.gettempdir(), "ddp_probe_test_ports")
    folder.mkdir(exist_ok=True)
    for port in _next:
        lock = os.open(str(folder / str(port)), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
        except OSError:
            os.close(lock)
            continue
        _locks.append(lock)
        while len(_locks) > _KEPT:
            os.close(_locks.pop(0))
        return port
    raise AssertionError("no port is free")
