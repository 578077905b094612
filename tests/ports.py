"""Hands out TCP ports, each once, that no other process of this machine takes before the test's job binds them.

The kernel gives ports of its own range to whoever asks for any: a port of that range that was free a moment ago may be gone when the job, which
first imports torch, binds it. These lie below the range, and a lock on a file says which process of which test run has one.
"""

import fcntl
import itertools
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO, Iterator, List

_LOWEST = 12000
_KEPT = 200  # Ports whose lock is kept; the jobs of earlier ones have ended.

_locks: List[IO[bytes]] = []


def _range_end() -> int:
    """Return where the kernel's own range begins."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 32768


def _candidates() -> Iterator[int]:
    """Yield the ports in a circle, from a place that each process draws for itself."""
    every = range(_LOWEST, max(_range_end(), _LOWEST + 4000))
    start = random.Random(os.urandom(8)).randrange(len(every))  # not a secret
    for number in itertools.count(start):
        yield every[number % len(every)]


_next = _candidates()


def free_port() -> int:
    """Return a port that nothing listens on."""
    folder = Path(tempfile.gettempdir(), "ddp_probe_test_ports")
    folder.mkdir(exist_ok=True)
    for port in _next:
        lock = (folder / str(port)).open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
        except OSError:
            lock.close()
            continue
        _locks.append(lock)
        while len(_locks) > _KEPT:
            _locks.pop(0).close()
        return port
    raise AssertionError("no port is free")
