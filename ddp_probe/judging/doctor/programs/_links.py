"""Whether this host reaches another one, by which interface, and what the clock of the other says."""

import contextlib
import fcntl
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Tuple

from ddp_probe.shared.meeting.wire import Line, listen

_SECONDS, _AT_A_TIME = 10.0, 32
_GET_ADDRESS = 0x8915  # ioctl(SIOCGIFADDR), Linux
_LOOPBACK = ("127.", "::1")


def answer_others(rank: int) -> int:
    """Answer everybody who connects with the rank and the time; return the port."""
    listening = listen(0)

    def serve() -> None:
        while True:
            connected, _ = listening.accept()
            line = Line(connected)
            with contextlib.suppress(OSError):
                line.send({"rank": rank, "time": time.time()})
            line.close()

    threading.Thread(target=serve, daemon=True).start()
    return int(listening.getsockname()[1])


def leaders(ranks: Dict[str, Any]) -> List[int]:
    """Return the lowest rank of each host."""
    lowest: Dict[str, int] = {}
    for rank in sorted(map(int, ranks)):
        lowest.setdefault(str(ranks[str(rank)]["identity"]), rank)
    return sorted(lowest.values())


def try_links(rank: int, ranks: Dict[str, Any], master: str) -> Dict[str, Any]:
    """Return what came of a connection to each other host."""
    chosen = leaders(ranks)
    if rank not in chosen:
        return {}
    others = [other for other in chosen if other != rank]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return dict(zip(map(str, others), pool.map(lambda other: _try(other, ranks[str(other)], master), others)))


def _try(other: int, known: Dict[str, Any], master: str) -> Dict[str, Any]:
    """Connect to a host; one that came by its loopback is the host of the store, under another address."""
    address = master if str(known["address"]).startswith(_LOOPBACK) else str(known["address"])
    own = route(address)
    own = own if own[0] else route(master)  # without a route to the other host, this host is known by its way to rank 0
    tried = {"address": address, "port": known["port"], "from": own}
    begun = time.time()
    try:
        line = Line(socket.create_connection((address, known["port"]), _SECONDS))
        said = line.receive(_SECONDS)
        line.close()
    except (OSError, ValueError) as exc:
        return {**tried, "error": str(getattr(exc, "strerror", None) or exc)}
    ended = time.time()
    if said.get("rank") != other:
        return {**tried, "error": "rank %s answers at this address" % said.get("rank")}
    return {**tried, "error": "", "offset": float(said["time"]) - (begun + ended) / 2, "delay": ended - begun}


def route(address: str) -> Tuple[str, str]:
    """Return the address and the interface by which this host would reach an address; nothing is sent."""
    try:
        family, kind, number, _, where = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, number) as probe:
            probe.connect(where)
            own = str(probe.getsockname()[0])
    except OSError:
        return "", ""
    return own, interface(own)


def gloo_address() -> str:
    """Return the address that gloo takes without GLOO_SOCKET_IFNAME: the first one of this host's name that is its own, else the loopback."""
    if os.environ.get("GLOO_SOCKET_IFNAME"):
        return ""
    with contextlib.suppress(OSError):
        for family, kind, number, _, where in socket.getaddrinfo(socket.gethostname(), 0, type=socket.SOCK_STREAM):
            with contextlib.suppress(OSError), socket.socket(family, kind, number) as probe:
                probe.bind(where)
                return str(where[0])
    return "127.0.0.1"


def interface(address: str) -> str:
    """Return the interface that has an IPv4 address; empty if none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                found = fcntl.ioctl(probe, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
            except OSError:  # it has no address
                continue
            if socket.inet_ntoa(found[20:24]) == address:
                return name
    return ""
