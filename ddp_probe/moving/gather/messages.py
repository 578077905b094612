"""What the hosts and rank 0 say to each other, each message one line of JSON with a bound, checked against its type; files come in pieces."""

import socket
import struct
import sys
from typing import Iterator, List, Optional, Type, TypeVar, Union

import msgspec

from ddp_probe.shared.meeting import Line
from ddp_probe.shared.schema import UNREADABLE

if sys.version_info >= (3, 9):
    from typing import Annotated
else:  # typing.Annotated is new in Python 3.9
    from typing_extensions import Annotated

VERSION = 1
MOST_FILES = 100_000  # Files of one host.

Short = Annotated[str, msgspec.Meta(max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=4000)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")]
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]


class RunOnHost(msgspec.Struct):
    """A run as a host has it: its name, and what shows whether a folder with another name is of the same launch."""

    name: Short
    ranks: Annotated[List[Number], msgspec.Meta(max_length=4096)]
    keys: Annotated[List[Annotated[List[Text], msgspec.Meta(max_length=8)]], msgspec.Meta(max_length=64)]
    world: Number
    start: float
    end: Optional[float] = None
    launch: Number = 0  # Which launch of the folder was named, from 1; 0 if none was.


class Hello(msgspec.Struct):
    """The first message of a rank."""

    gather: int  # Version of these messages.
    rank: Number
    world: Number
    run: Short
    token: Short
    host: Short
    leads: bool  # Whether it brings the files of its host; another rank of the host only waits for the exit code.
    found: Optional[RunOnHost] = None
    why: Text = ""  # Why it found none.


class Wanted(msgspec.Struct):
    """What rank 0 wants of a host."""

    refused: Text = ""
    run: Optional[RunOnHost] = None
    logs: bool = False


class Holds(msgspec.Struct, tag="holds"):
    """The names of the logs of the wanted run that a host has."""

    logs: Annotated[List[Short], msgspec.Meta(max_length=MOST_FILES)]


class Nothing(msgspec.Struct, tag="nothing"):
    """A host has no file of the wanted run, or cannot fold what it has."""

    why: Text


class Leave(msgspec.Struct):
    """Which of these logs another host has brought already."""

    out: Annotated[List[Short], msgspec.Meta(max_length=MOST_FILES)]


class Folding(msgspec.Struct, tag="folding"):
    """A host folds: how many bytes of how many it has read."""

    read: Size
    everything: Size


class Offer(msgspec.Struct, tag="offer"):
    """A host is about to send a file: its fold, with an empty name, or one of its run."""

    name: Short
    size: Size


class Have(msgspec.Struct):
    """What rank 0 has of this file; it wants none of it if there is a reason."""

    size: Size = 0
    sha256: Sha256 = ""
    not_wanted: Text = ""


class Begin(msgspec.Struct):
    """The byte from which the file follows, in pieces preceded by their length; the last piece is empty."""

    at: Size


class Sent(msgspec.Struct):
    """The digest of the file as it was read on its host, from its first byte on."""

    sha256: Sha256


class Finished(msgspec.Struct, tag="end"):
    """A host has sent everything."""


class ExitCode(msgspec.Struct):
    """The exit code of the report, for all ranks."""

    code: Annotated[int, msgspec.Meta(ge=0, le=255)]


FromHost = Union[Holds, Nothing, Folding, Offer, Finished]


# A connection of gather. Every message is one line of JSON with a bound, checked against its type; files come in pieces.

PIECE = 1 << 18  # Bytes of a file that are sent at a time.
_HELLO, _LONGEST = 1 << 20, 1 << 25  # Bytes of a first message, which may be a stranger's, and of a later one.
_LENGTH = struct.Struct("!I")
_T = TypeVar("_T")


class GatherLine(Line):
    """A connection that carries these messages, and pieces of files."""

    def __init__(self, connected: socket.socket, seconds: float) -> None:
        super().__init__(connected)
        self._seconds = seconds
        _notice_a_dead_machine(connected, seconds)

    def say(self, message: msgspec.Struct) -> None:
        """Send a message."""
        self.send_bytes(msgspec.json.encode(message, enc_hook=str) + b"\n")

    def hear(self, kind: Type[_T]) -> _T:
        """Return the next message; the other side has to send it within the time limit."""
        return _decoded(self.receive_line(self._seconds, _LONGEST), kind)

    def hear_first(self, seconds: float) -> Hello:
        """Return the first message of a rank."""
        return _decoded(self.receive_line(seconds, _HELLO), Hello)

    def wait(self, kind: Type[_T]) -> _T:
        """Return the next message, however long it takes, as long as the other machine is up."""
        return _decoded(self.receive_line(None, _LONGEST), kind)

    def hear_any(self) -> FromHost:
        """Return the next message of a host."""
        finished: FromHost = _decoded(self.receive_line(self._seconds, _LONGEST), FromHost)  # type: ignore[arg-type]  # a Union is not a Type
        return finished

    def send_piece(self, piece: bytes) -> None:
        """Send a piece of a file; an empty one ends it."""
        self.send_bytes(_LENGTH.pack(len(piece)) + piece)

    def pieces(self, most: int) -> Iterator[bytes]:
        """Yield the pieces of a file, which has at most this many bytes."""
        while True:
            length = int(_LENGTH.unpack(self.receive_bytes(_LENGTH.size, self._seconds))[0])
            if not length:
                return
            most -= length
            if length > PIECE or most < 0:
                raise ValueError("it sends more than it has announced")
            yield self.receive_bytes(length, self._seconds)


def _decoded(text: bytes, kind: Type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except UNREADABLE as exc:
        raise ValueError("it sent what is not a valid message: %s" % exc) from exc


def _notice_a_dead_machine(connected: socket.socket, seconds: float) -> None:
    """Let the kernel end a connection whose other machine is gone; nothing else would end the wait for a message."""
    limit = max(1, int(seconds))
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, limit), (socket.TCP_KEEPINTVL, max(1, limit // 4)), (socket.TCP_KEEPCNT, 4)):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
