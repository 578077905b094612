"""Meets the doctors of the other ranks of a launch, tries the links between hosts, and says what all have said."""

import contextlib
import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from ddp_probe.doctor.programs._say import end_with_parent, say, stage
from ddp_probe.doctor.programs.agent_port import share_port
from ddp_probe.shared.door import Door, Guests, refusal
from ddp_probe.shared.meeting import Line, entered, fresh_token, host_identity, listen
from ddp_probe.shared.regular_files import open_text

_LINKS, _LINKS_AT_A_TIME = 10.0, 32
_LEAVE = 5.0  # Seconds that ranks have to take the last message.
_FOREVER = 24 * 3600.0  # doctor ends its children long before


class Hub:
    """The meeting, from the first rank that connects to the last that leaves."""

    def __init__(self, listening: socket.socket, world: int, run: str, token: str) -> None:
        self._world = world
        self._changed = threading.Condition()
        self._guests = Guests(world, run)
        self.token = self._guests.token
        self._links: Dict[int, Dict[str, Any]] = {}
        self._left = 0
        self._roster: Dict[str, Any] = {}
        self._all: Dict[str, Any] = {}
        self._door = Door(listening, token, lambda visitor: threading.Thread(target=self._serve, args=(visitor,), daemon=True).start())
        self._door.open()

    def hold(self, seconds: float) -> None:
        """Wait for the ranks, at most this long after rank 0 itself; then for what they find, and until they have left."""
        came = self._guests.came
        self._until(lambda: 0 in came, seconds + _LINKS)
        self._until(lambda: len(came) == self._world, seconds)
        with self._changed:
            public = ("host", "identity", "address", "port")
            ranks = {}
            for rank, greeting in came.items():
                ranks[rank] = {name: greeting[name] for name in public}
            self._roster = {"ranks": ranks}
            self._guests.closed = True
            self._changed.notify_all()
        rounds = 1 + len(came) // _LINKS_AT_A_TIME
        self._until(lambda: len(self._links) == len(came), _LINKS * rounds + 2 * _LEAVE)
        with self._changed:
            self._all = {"ranks": came, "found": self._links, "strangers": self._guests.strangers, "unknown": self._door.strangers()}
            self._changed.notify_all()
        self._until(lambda: self._left >= len(self._links), _LEAVE)

    def _until(self, done: Callable[[], bool], seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(done, seconds)

    def _serve(self, connected: socket.socket) -> None:
        line = Line(connected)
        try:
            greeting = line.receive(_LINKS)
            if not self._admits(greeting):
                line.send(refusal(greeting))
                return
            self._until(lambda: bool(self._roster), _FOREVER)
            line.send(self._roster)
            message = line.receive(_FOREVER)
            with self._changed:
                self._links[greeting["rank"]] = message
                self._changed.notify_all()
            self._until(lambda: bool(self._all), _FOREVER)
            line.send(self._all)
            with self._changed:
                self._left += 1
        except (OSError, ValueError, KeyError, TypeError):  # a rank that has died: it is absent
            pass
        finally:
            line.close()
            with self._changed:
                self._changed.notify_all()

    def _admits(self, greeting: Dict[str, Any]) -> bool:
        with self._changed:
            admitted = self._guests.take(greeting)
            self._changed.notify_all()
            return admitted


# Whether this host reaches another one, by which interface, and what the clock of the other says.

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
    """Return the result of a connection to each other host."""
    chosen = leaders(ranks)
    if rank not in chosen:
        return {}
    others = [other for other in chosen if other != rank]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return dict(zip(map(str, others), pool.map(lambda other: _try(other, ranks[str(other)], master), others)))


def _try(other: int, target: Dict[str, Any], master: str) -> Dict[str, Any]:
    """Connect to a host; if it connected from its loopback, it is the host of the store, at another address."""
    address = master if str(target["address"]).startswith(_LOOPBACK) else str(target["address"])
    local = route(address)
    local = local if local[0] else route(master)  # without a route to the other host, this host is known by its way to rank 0
    tried = {"address": address, "port": target["port"], "from": local}
    begun = time.time()
    try:
        line = Line(socket.create_connection((address, target["port"]), _SECONDS))
        answer = line.receive(_SECONDS)
        line.close()
    except (OSError, ValueError) as exc:
        return {**tried, "error": str(getattr(exc, "strerror", None) or exc)}
    ended = time.time()
    if answer.get("rank") != other:
        return {**tried, "error": "rank %s answers at this address" % answer.get("rank")}
    return {**tried, "error": "", "offset": float(answer["time"]) - (begun + ended) / 2, "delay": ended - begun}


def route(address: str) -> Tuple[str, str]:
    """Return the address and the interface by which this host would reach an address; nothing is sent."""
    try:
        family, kind, number, _, where = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, number) as probe:
            probe.connect(where)
            local = str(probe.getsockname()[0])
    except OSError:
        return "", ""
    return local, interface(local)


def gloo_address() -> str:
    """Return the address that gloo takes without GLOO_SOCKET_IFNAME: the first address of this host's name that this host has, else the loopback."""
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
                packed = fcntl.ioctl(probe, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
            except OSError:  # it has no address
                continue
            if socket.inet_ntoa(packed[20:24]) == address:
                return name
    return ""


_MARGIN = 60.0  # Seconds for the links, after all have connected.


class Task(NamedTuple):
    """What the parent wants; a file holds it as JSON."""

    rank: int
    world: int
    address: str  # MASTER_ADDR
    port: int  # MASTER_PORT
    agent_key: str  # The key in the store of torchrun's agent, if the agent holds MASTER_PORT.
    run: str  # Launches with another name do not meet.
    token: str  # What the ranks of the launch know; with an agent's store, rank 0 publishes another token there.
    seconds: float  # How long to wait for other ranks.
    facts: Dict[str, Any]  # What the parent found on this host.


def main(path: str) -> None:
    """Meet, and print the result."""
    with open_text(path) as file:
        task = Task(**json.load(file))
    holding = _hold(task) if task.rank == 0 else None
    line = _connect(task, *(_port_and_token(task) if holding is None else holding[1]))
    with stage("meet"):
        _hello(task, line, holding[2] if holding is not None else "")
        roster = line.receive(task.seconds + _MARGIN)
        if "refused" in roster:
            raise RuntimeError(roster["refused"])
        line.send({"links": try_links(task.rank, roster["ranks"], task.address)})
        everything = line.receive(task.seconds + _MARGIN)
    line.close()
    if holding is not None:
        holding[0].join()
    say(meeting=everything)
    os._exit(0)  # threads that wait for connections end with the process


def _hold(task: Task) -> "tuple[threading.Thread, Tuple[int, str], str]":
    """Hold the meeting in a thread, at MASTER_PORT if it is free for that; return the thread, the port and the token, and that of its rank 0."""
    with stage("listen"):
        listening = listen(0 if task.agent_key else task.port)
        port = int(listening.getsockname()[1])
    token = task.token
    if task.agent_key:
        token = fresh_token()
        with stage("store"):
            share_port(task.address, task.port, task.agent_key, task.seconds, port, token)
    hub = Hub(listening, task.world, task.run, token)
    thread = threading.Thread(target=hub.hold, args=(task.seconds,), daemon=True)
    thread.start()
    return thread, (port, token), hub.token


def _port_and_token(task: Task) -> Tuple[int, str]:
    if not task.agent_key:
        return task.port, task.token
    with stage("store"):
        return share_port(task.address, task.port, task.agent_key, task.seconds)


def _connect(task: Task, port: int, token: str) -> Line:
    say(own=route(task.address))
    with stage("connect"):
        return Line(entered(task.address, port, token, task.seconds))


def _hello(task: Task, line: Line, token: str) -> None:
    address, interface = route(task.address)
    greeting = {
        "rank": task.rank,
        "world": task.world,
        "run": task.run,
        "token": token,
        "host": socket.gethostname(),
        "identity": host_identity(),
    }
    about = {"address": address, "interface": interface, "facts": task.facts, "gloo": gloo_address()}
    line.send({**greeting, **about, "port": answer_others(task.rank)})


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
