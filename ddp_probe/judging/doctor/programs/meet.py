"""Meets the doctors of the other ranks of a launch, tries the links between hosts, and says what all have said."""

import json
import os
import socket
import sys
import threading
from typing import Any, Dict, NamedTuple, Tuple

from ddp_probe.judging.doctor.programs import _links
from ddp_probe.judging.doctor.programs._agent_store import share_port
from ddp_probe.judging.doctor.programs._hub import Hub
from ddp_probe.judging.doctor.programs._say import end_with_parent, say, stage
from ddp_probe.shared.meeting.place import fresh_token, host_identity
from ddp_probe.shared.meeting.wire import Line, entered, listen

_MARGIN = 60.0  # Seconds for the links, after all have come.


class Task(NamedTuple):
    """What the parent wants; a file holds it as JSON."""

    rank: int
    world: int
    address: str  # MASTER_ADDR
    port: int  # MASTER_PORT
    agent_key: str  # The key in the store of torchrun's agent, if the agent holds MASTER_PORT.
    run: str  # Launches with another name do not meet.
    token: str  # What the ranks of the launch know; with an agent's store, rank 0 tells another one by it.
    seconds: float  # How long to wait for other ranks.
    facts: Dict[str, Any]  # What the parent found on this host.


def main(path: str) -> None:
    """Meet, and say what came of it."""
    with open(path, encoding="utf-8") as file:
        task = Task(**json.load(file))
    holding = _hold(task) if task.rank == 0 else None
    line = _connect(task, *(_told(task) if holding is None else holding[1]))
    with stage("meet"):
        _hello(task, line, holding[2] if holding is not None else "")
        roster = line.receive(task.seconds + _MARGIN)
        if "refused" in roster:
            raise RuntimeError(roster["refused"])
        line.send({"links": _links.try_links(task.rank, roster["ranks"], task.address)})
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


def _told(task: Task) -> Tuple[int, str]:
    if not task.agent_key:
        return task.port, task.token
    with stage("store"):
        return share_port(task.address, task.port, task.agent_key, task.seconds)


def _connect(task: Task, port: int, token: str) -> Line:
    say(own=_links.route(task.address))
    with stage("connect"):
        return Line(entered(task.address, port, token, task.seconds))


def _hello(task: Task, line: Line, token: str) -> None:
    address, interface = _links.route(task.address)
    said = {"rank": task.rank, "world": task.world, "run": task.run, "token": token, "host": socket.gethostname(), "identity": host_identity()}
    about = {"address": address, "interface": interface, "facts": task.facts, "gloo": _links.gloo_address()}
    line.send({**said, **about, "port": _links.answer_others(task.rank)})


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
