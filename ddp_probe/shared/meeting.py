"""Who this process is in its launch, and at which address the ranks of the launch meet."""

import contextlib
import errno
import hashlib
import json
import os
import re
import socket
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ddp_probe.shared.rank_info import rank_info

_NAMES = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "LSB_JOBID", "PBS_JOBID")
_PORTS, _FIRST_PORT = 10000, 20000  # Below the ports that Linux hands out.


class MeetingPlace(NamedTuple):
    """The address at which the ranks of a launch meet, and the rank of this process."""

    rank: int
    world: int
    address: str  # Of the host of rank 0.
    port: int
    run: str  # Launches with another name do not meet.
    token: str  # What the ranks of the launch know, and others do not.


def is_launch(environ: Mapping[str, str]) -> bool:
    """Return whether this process is one rank of several."""
    here = rank_info(environ)
    return here.rank is not None and (here.world_size or 1) > 1


def leads_launch(environ: Mapping[str, str]) -> bool:
    """Return whether this is rank 0."""
    return rank_info(environ).rank in (None, 0)


def leads_host(environ: Mapping[str, str]) -> bool:
    """Return whether this rank acts for all ranks on its host."""
    return rank_info(environ).local_rank in (None, 0)


def missing(environ: Mapping[str, str]) -> List[str]:
    """Return the variables that are not set as ranks need them to meet."""
    names = [] if environ.get("MASTER_ADDR") else ["MASTER_ADDR"]
    return names if environ.get("MASTER_PORT", "").isdigit() else [*names, "MASTER_PORT"]


def place(environ: Mapping[str, str]) -> MeetingPlace:
    """Return the place of a process whose environment has all the variables; see `missing`."""
    here = rank_info(environ)
    run = environ.get("TORCHELASTIC_RUN_ID") or environ.get("SLURM_JOB_ID") or ""
    port = int(environ["MASTER_PORT"])
    return MeetingPlace(here.rank or 0, here.world_size or 1, environ["MASTER_ADDR"], port, run, _token(environ, port))


def fresh_token() -> str:
    """Return a new token, from the random source of the system."""
    return os.urandom(32).hex()


def _token(environ: Mapping[str, str], port: int) -> str:
    """Make a token of what a launcher gives all its ranks: the name of the launch, if there is one, and MASTER_PORT."""
    name = next((environ[variable] for variable in _NAMES if environ.get(variable)), "")
    return hashlib.sha256(b"ddp_probe meets\0%s\0%d" % (os.fsencode(name), port)).hexdigest()


def of_slurm_step(environ: Mapping[str, str]) -> Tuple[str, int]:
    """Return an address and a port on which all tasks of a step of SLURM agree; without a step, an empty one.

    Task 0 is on the first host of the step, unless the step was started with --distribution=arbitrary or plane.
    """
    job, step = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_STEP_ID", "")
    host = _first_host(environ.get("SLURM_STEP_NODELIST", ""))
    if not (host and job.isdigit() and step.isdigit()):
        return "", 0
    return host, _FIRST_PORT + (int(job) * 31 + int(step)) % _PORTS


def _first_host(nodes: str) -> str:
    """Return the first of a list of hosts such as gpu[007-011,20]-ib,login1."""
    found = re.match(r"([^\[\],\s]+)?(?:\[(\d+)[\d,-]*\]([^\[\],\s]*))?", nodes)
    return "".join(part or "" for part in found.groups()) if found else ""


def agent_key(environ: Mapping[str, str], purpose: str) -> str:
    """Return the key in the store of torchrun's agent, if the agent listens at MASTER_PORT; ranks that it starts again meet under another one."""
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return ""
    return "ddp_probe_%s/%s" % (purpose, environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def host_identity() -> str:
    """Return what tells this host from the others; containers of one machine are hosts if each has a network of its own."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return "%s %s" % (file.read().strip(), os.readlink("/proc/self/ns/net"))


# How the ranks of several hosts talk: one JSON object a line.
#
# Not through torch's store: a client of torch 1.12 and a store of torch 2.13 reset the connection, and hosts of different versions have to meet too.

_LONGEST = 64 << 20  # Bytes of one message.
_AGAIN = 0.2  # Seconds between two tries to connect: rank 0 may not listen yet.
_ONE_TRY = 15.0
_STILL_THERE = 2.0  # Seconds in which a rank 0 that has turned this rank away must be reached again; after them it has ended.
_LONGEST_ANSWER = 1000
_GREETING = b"ddp_probe "  # Before the token, in the first line of a connection.

NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
COME_IN = b"{}\n"
REFUSED = b'{"refused": "this rank does not belong to this meeting: it has not the token of the launch, or another version of ddp_probe"}\n'


class RefusedError(Exception):
    """Rank 0 does not take this rank."""


class TurnedAwayError(ConnectionError):
    """Rank 0 has closed the connection before it said anything: it has too many, or another version."""


def word(token: str) -> bytes:
    """Return what a rank of the launch says first."""
    return b"%s%s\n" % (_GREETING, token.encode())


def begins(said: bytes) -> bool:
    """Return whether this may be the beginning of such a word."""
    return said.startswith(_GREETING[: len(said)])


def listen(port: int) -> socket.socket:
    """Return a socket that listens on all addresses of this host, as torch's store does."""
    if socket.has_dualstack_ipv6():  # listens to IPv4 as well
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096)
    return socket.create_server(("", port), backlog=4096)


def connected(address: str, port: int, seconds: float) -> socket.socket:
    """Return a connection to rank 0, which may start later."""
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((address, port), max(0.1, min(_ONE_TRY, until - time.monotonic())))
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(_AGAIN)


def entered(address: str, port: int, token: str, seconds: float) -> socket.socket:
    """Return a connection that rank 0 has let in; comes again if strangers crowd this rank out before rank 0 has heard it."""
    until, patience = time.monotonic() + seconds, seconds
    while True:
        one = connected(address, port, patience)
        try:
            _say_token(one, token, seconds)
        except TurnedAwayError:
            one.close()
            if time.monotonic() > until:
                raise
        except BaseException:
            one.close()
            raise
        else:
            return one
        time.sleep(_AGAIN)
        patience = _STILL_THERE


def _say_token(one: socket.socket, token: str, seconds: float) -> None:
    """Say the token, and hear whether it is the right one."""
    one.settimeout(seconds)
    answer = b""
    try:
        one.sendall(word(token))
        while not answer.endswith(b"\n") and len(answer) < _LONGEST_ANSWER:
            piece = one.recv(1)  # nothing beyond the line: what follows is the meeting's
            if not piece:
                raise ConnectionError("the other side closed the connection")
            answer += piece
    except ConnectionError as exc:
        raise TurnedAwayError(str(exc)) from exc
    if answer != COME_IN:
        raise RefusedError(_refusal(answer))


def _refusal(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["refused"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "what listens there is not rank 0 of this launch"


class Line:
    """A connection that carries messages."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._file = connected.makefile("rb")

    def send(self, message: Dict[str, Any]) -> None:
        """Send a message."""
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send bytes: a whole line, or what a line has announced."""
        self._socket.sendall(data)

    def receive(self, seconds: Optional[float]) -> Dict[str, Any]:
        """Return the next message."""
        try:
            message: Dict[str, Any] = json.loads(self.receive_line(seconds))
        except RecursionError:  # Nested a thousand deep: no other side of ours sends that.
            raise ConnectionError("the message cannot be read") from None
        return message

    def receive_line(self, seconds: Optional[float], longest: int = _LONGEST) -> bytes:
        """Return the bytes of the next message; None waits as long as the other side lives."""
        self._socket.settimeout(seconds)
        text = self._file.readline(longest)
        if not text.endswith(b"\n"):
            raise ConnectionError("the message is too long" if len(text) == longest else "the other side closed the connection")
        return text

    def receive_bytes(self, count: int, seconds: float) -> bytes:
        """Return the next bytes, which a message has announced."""
        self._socket.settimeout(seconds)
        data = self._file.read(count)
        if len(data) < count:
            raise ConnectionError("the other side closed the connection")
        return data

    def shut(self) -> None:
        """End it under whoever waits for its messages."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._socket.close()
