"""A connection of gather. Every message is one line of JSON with a bound, checked against its type; files come in pieces."""

import socket
import struct
from typing import Iterator, Type, TypeVar

import msgspec

from ddp_probe.moving.gather.messages import FromHost, Hello
from ddp_probe.shared.meeting.wire import Line

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
        self.send_bytes(msgspec.json.encode(message) + b"\n")

    def hear(self, kind: Type[_T]) -> _T:
        """Return the next message; the other side has to send it within the time limit."""
        return _decoded(self.receive_line(self._seconds, _LONGEST), kind)

    def hear_first(self, seconds: float) -> Hello:
        """Return the first message of a rank."""
        return _decoded(self.receive_line(seconds, _HELLO), Hello)

    def wait(self, kind: Type[_T]) -> _T:
        """Return the next message, however long it takes, as long as the other machine lives."""
        return _decoded(self.receive_line(None, _LONGEST), kind)

    def hear_any(self) -> FromHost:
        """Return the next message of a host."""
        found: FromHost = _decoded(self.receive_line(self._seconds, _LONGEST), FromHost)  # type: ignore[arg-type]  # a Union is not a Type
        return found

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
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise ValueError("it sent what is not a valid message: %s" % exc) from exc


def _notice_a_dead_machine(connected: socket.socket, seconds: float) -> None:
    """Let the kernel end a connection whose other machine is gone; nothing else would end the wait for a message."""
    limit = max(1, int(seconds))
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, limit), (socket.TCP_KEEPINTVL, max(1, limit // 4)), (socket.TCP_KEEPCNT, 4)):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
