"""Hands out TCP ports, each once, that no other process of this machine takes before the test's job binds them.

The kernel gives ports of its own range to whoever asks for any: a port of that range that was free a moment ago may be gone when the job, which
first imports torch, binds it. These lie below the range, and below the ports that the remedy `rendezvous` derives. A name in the kernel's abstract
space, which all users of the machine share and which needs no file, keeps other test runs away; it is gone with its process.
"""

import itertools
import os
import random
import socket
from typing import Iterator, List

_PORTS = range(10000, 20000)
_KEPT = 200  # Ports whose name is kept; the jobs of earlier ones have ended.

_names: List[socket.socket] = []


def _candidates() -> Iterator[int]:
    """Yield the ports in a circle, from a place that each process draws for itself."""
    for number in itertools.count(random.Random(os.urandom(8)).randrange(len(_PORTS))):
        yield _PORTS[number % len(_PORTS)]


_next = _candidates()


def free_port() -> int:
    """Return a port that nothing listens on."""
    for port in _next:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind("\0ddp_probe test port %d" % port)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
        except OSError:
            name.close()
            continue
        _names.append(name)
        while len(_names) > _KEPT:
            _names.pop(0).close()
        return port
    raise AssertionError("no port is free")
