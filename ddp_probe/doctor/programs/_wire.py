"""How the ranks of several hosts talk: one JSON object a line.

Not through torch's store: a client of torch 1.12 and a store of torch 2.13 reset the connection, and different versions are what is looked for.
"""

import json
import socket
from typing import Any, Dict

_LONGEST = 64 << 20  # Bytes of one message.


def listen(port: int) -> socket.socket:
    """Return a socket that listens on all addresses of this host, as torch's store does."""
    if socket.has_dualstack_ipv6():  # listens to IPv4 as well
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096)
    return socket.create_server(("", port), backlog=4096)


class Line:
    """A connection that carries messages."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._file = connected.makefile("rb")

    def send(self, message: Dict[str, Any]) -> None:
        """Send a message."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float) -> Dict[str, Any]:
        """Return the next message."""
        self._socket.settimeout(seconds)
        text = self._file.readline(_LONGEST)
        if not text.endswith(b"\n"):
            raise ConnectionError("the other side closed the connection")
        message: Dict[str, Any] = json.loads(text)
        return message

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._socket.close()
