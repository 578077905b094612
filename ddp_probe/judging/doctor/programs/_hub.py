"""Rank 0's side of the meeting: waits for all ranks, tells them of each other, and collects what each found."""

import socket
import threading
from typing import Any, Callable, Dict

from ddp_probe.shared.meeting.door import Door
from ddp_probe.shared.meeting.guests import Guests, refusal
from ddp_probe.shared.meeting.wire import Line

_LINKS, _LINKS_AT_A_TIME = 10.0, 32
_LEAVE = 5.0  # Seconds that ranks have to take the last message.
_FOREVER = 24 * 3600.0  # doctor ends its children long before


class Hub:
    """The meeting, from the first rank that comes to the last that leaves."""

    def __init__(self, listening: socket.socket, world: int, run: str, token: str) -> None:
        self._world = world
        self._changed = threading.Condition()
        self._guests = Guests(world, run)
        self.token = self._guests.token
        self._found: Dict[int, Dict[str, Any]] = {}
        self._left = 0
        self._roster: Dict[str, Any] = {}
        self._all: Dict[str, Any] = {}
        self._door = Door(listening, token, lambda one: threading.Thread(target=self._serve, args=(one,), daemon=True).start())
        self._door.open()

    def hold(self, seconds: float) -> None:
        """Wait for the ranks, at most this long after rank 0 itself; then for what they find, and until they have left."""
        came = self._guests.came
        self._until(lambda: 0 in came, seconds + _LINKS)
        self._until(lambda: len(came) == self._world, seconds)
        with self._changed:
            public = ("host", "identity", "address", "port")
            self._roster = {"ranks": {rank: {name: said[name] for name in public} for rank, said in came.items()}}
            self._guests.closed = True
            self._changed.notify_all()
        rounds = 1 + len(came) // _LINKS_AT_A_TIME
        self._until(lambda: len(self._found) == len(came), _LINKS * rounds + 2 * _LEAVE)
        with self._changed:
            self._all = {"ranks": came, "found": self._found, "strangers": self._guests.strangers, "unknown": self._door.strangers()}
            self._changed.notify_all()
        self._until(lambda: self._left >= len(self._found), _LEAVE)

    def _until(self, done: Callable[[], bool], seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(done, seconds)

    def _serve(self, connected: socket.socket) -> None:
        line = Line(connected)
        try:
            said = line.receive(_LINKS)
            if not self._admits(said):
                line.send(refusal(said))
                return
            self._until(lambda: bool(self._roster), _FOREVER)
            line.send(self._roster)
            found = line.receive(_FOREVER)
            with self._changed:
                self._found[said["rank"]] = found
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

    def _admits(self, said: Dict[str, Any]) -> bool:
        with self._changed:
            admitted = self._guests.take(said)
            self._changed.notify_all()
            return admitted
