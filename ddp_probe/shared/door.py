"""Who belongs to a meeting: each rank of the launch once; others are refused and noted."""

import contextlib
import hmac
import os
import selectors
import socket
import threading
import time
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple

from ddp_probe.shared import meeting


class Guests:
    """The ranks that have come; whoever asks holds a lock."""

    def __init__(self, world: int, run: str) -> None:
        self._world, self._run = world, run
        self.token = os.urandom(8).hex()  # By which the meeting knows its own rank 0: another host's may connect first.
        self.came: Dict[int, Dict[str, Any]] = {}
        self.strangers: List[Dict[str, Any]] = []
        self.closed = False  # Whoever comes now is too late.

    def take(self, said: Dict[str, Any]) -> bool:
        """Take a rank in, unless it came twice, comes too late, or belongs to another launch."""
        rank, fits = said["rank"], said["world"] == self._world and said["run"] == self._run
        fits = fits and (rank != 0 or said["token"] == self.token)
        if fits and rank not in self.came and 0 <= rank < self._world and not self.closed:
            self.came[rank] = said
            return True
        self.strangers.append({name: said[name] for name in ("rank", "world", "run", "host")})
        return False


def refusal(said: Dict[str, Any]) -> Dict[str, Any]:
    """Return the message to a rank that was not taken in."""
    return {"refused": "rank %s of %s on %s does not belong to this meeting" % (said["rank"], said["world"], said["host"])}


# Who comes into a meeting: whoever says the token of the launch. All others are counted, have some seconds, and keep no rank out.

_PATIENCE = 10.0  # Seconds that a connection has to say the token.
_MOST = 64  # Connections that have not said it yet, and addresses that are counted one by one.
_TURN, _AT_A_TIME = 0.2, 64
_NAMED = 3  # Addresses that a sentence names.
_SENTENCE = "%d connection%s did not say the token of this launch, within %.0f s: %s"
_PIECE = 4096  # All that another version of ddp_probe sends first: what is left unread when a connection is closed takes the answer with it.


class _Caller(NamedTuple):
    """A connection that has not said the token yet."""

    address: str
    until: float
    said: bytes = b""


class Door:
    """Takes the connections of one listening socket, in one thread however many come."""

    def __init__(self, listening: socket.socket, token: str, enter: Callable[[socket.socket], None]) -> None:
        self._listening, self._word, self._enter = listening, meeting.word(token), enter
        self._selector = selectors.DefaultSelector()
        self._callers: Dict[socket.socket, _Caller] = {}  # The oldest first.
        self._strangers: Counter[str] = Counter()  # By address; of those beyond the first _MOST, under an empty one.
        self._times = (0.0, 0.0)  # When the first and the last of them was turned away.

    def open(self) -> None:
        """Let connections come from now on."""
        self._listening.setblocking(False)
        self._selector.register(self._listening, selectors.EVENT_READ)
        threading.Thread(target=self._keep, daemon=True).start()

    def close(self) -> None:
        """Let no one in from now on."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closes everything

    def strangers(self) -> str:
        """Return how many did not know the launch, as a sentence without its full stop; empty if all did."""
        count, (first, last) = Counter(self._strangers), self._times
        total = sum(count.values())
        others = len(count) - _NAMED
        most = ["%d from %s" % (number, address or "elsewhere") for address, number in count.most_common(_NAMED)]
        most += ["the others from %d more addresses" % others] if others > 0 else []
        told = (total, "" if total == 1 else "s", last - first, ", ".join(most))
        return _SENTENCE % told if total else ""

    def _keep(self) -> None:
        while self._listening.fileno() >= 0:
            ready = [key.fileobj for key, _ in self._selector.select(_TURN)]
            for connected in [each for each in self._callers if each in ready]:
                self._hear(connected)
            self._time_out()
            if self._listening in ready and not self._accepts():
                self._end()

    def _end(self) -> None:
        for caller in list(self._callers):
            self._forget(caller).close()
        self._listening.close()
        self._selector.close()

    def _accepts(self) -> bool:
        """Take who waits to connect; return whether the door is open."""
        for _ in range(_AT_A_TIME):
            try:
                connected, address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return True
            except OSError as exc:
                if exc.errno not in meeting.NO_ROOM:
                    return False
                self._make_room(len(self._callers))
                time.sleep(_TURN)  # until others have closed theirs
                return True
            self._make_room(len(self._callers) + 1 - _MOST)
            connected.setblocking(False)
            self._callers[connected] = _Caller(str(address[0]).replace("::ffff:", ""), time.monotonic() + _PATIENCE)
            self._selector.register(connected, selectors.EVENT_READ)
            self._hear(connected)
        return True

    def _make_room(self, count: int) -> None:
        """Whoever has the most connections that have said nothing loses the oldest of them. A rank comes again."""
        for _ in range(count):
            crowd = Counter(caller.address for caller in self._callers.values()).most_common(1)[0][0]
            self._turn_away(next(connected for connected, caller in self._callers.items() if caller.address == crowd))

    def _time_out(self) -> None:
        now = time.monotonic()
        for connected in [connected for connected, caller in self._callers.items() if caller.until < now]:
            self._turn_away(connected)

    def _hear(self, connected: socket.socket) -> None:
        """Read on. Only the whole token is compared: nobody finds it out byte by byte."""
        try:
            data = connected.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        caller = self._callers[connected]
        said = caller.said + data
        if hmac.compare_digest(said, self._word):
            self._let_in(connected)
        elif data and len(said) < len(self._word) and meeting.begins(said):
            self._callers[connected] = caller._replace(said=said)
        else:
            self._turn_away(connected, meeting.REFUSED if data else b"")

    def _let_in(self, connected: socket.socket) -> None:
        self._forget(connected)
        try:
            connected.sendall(meeting.COME_IN)
            connected.setblocking(True)
            self._enter(connected)
        except (OSError, RuntimeError):  # It is gone already, or there is no room for one more thread.
            connected.close()

    def _turn_away(self, connected: socket.socket, answer: bytes = b"") -> None:
        address = self._callers[connected].address
        with contextlib.suppress(OSError), self._forget(connected):
            connected.sendall(answer)
        now = time.monotonic()
        self._times = self._times[0] or now, now
        known = address in self._strangers or len(self._strangers) < _MOST
        self._strangers[address if known else ""] += 1

    def _forget(self, connected: socket.socket) -> socket.socket:
        del self._callers[connected]
        self._selector.unregister(connected)
        return connected
