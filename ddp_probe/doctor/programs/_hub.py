"""Rank 0's side of the meeting: waits for all ranks, tells them of each other, and collects what each found."""

import os
import socket
import threading
from typing import Any, Callable, Dict, List

from ddp_probe.doctor.programs._wire import Line

_LINKS, _LINKS_AT_A_TIME = 10.0, 32
_LEAVE = 5.0  # Seconds that ranks have to take the last message.
_FOREVER = 24 * 3600.0  # doctor ends its children long before


class Hub:
    """The meeting, from the first rank that comes to the last that leaves."""

    def __init__(self, listening: socket.socket, world: int, run: str) -> None:
        self._listening, self._world, self._run = listening, world, run
        self.token = os.urandom(8).hex()  # By which it knows its own rank 0: another host's may connect first.
        self._changed = threading.Condition()
        self._came: Dict[int, Dict[str, Any]] = {}
        self._strangers: List[Dict[str, Any]] = []
        self._found: Dict[int, Dict[str, Any]] = {}
        self._left = 0
        self._roster: Dict[str, Any] = {}
        self._all: Dict[str, Any] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, seconds: float) -> None:
        """Wait for the ranks, at most this long after rank 0 itself; then for what they find, and until they have left."""
        self._until(lambda: 0 in self._came, seconds + _LINKS)
        self._until(lambda: len(self._came) == self._world, seconds)
        with self._changed:
            public = ("host", "identity", "address", "port")
            self._roster = {"ranks": {rank: {name: said[name] for name in public} for rank, said in self._came.items()}}
            self._changed.notify_all()
        rounds = 1 + len(self._came) // _LINKS_AT_A_TIME
        self._until(lambda: len(self._found) == len(self._came), _LINKS * rounds + 2 * _LEAVE)
        with self._changed:
            self._all = {"ranks": self._came, "found": self._found, "strangers": self._strangers}
            self._changed.notify_all()
        self._until(lambda: self._left >= len(self._found), _LEAVE)

    def _until(self, done: Callable[[], bool], seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(done, seconds)

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # the process is about to end
                return
            threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        line = Line(connected)
        try:
            said = line.receive(_LINKS)
            if not self._admits(said):
                line.send({"refused": "rank %s of %s on %s does not belong to this meeting" % (said["rank"], said["world"], said["host"])})
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
        except (OSError, ValueError, KeyError, TypeError):  # a port scanner, or a rank that has died: it is absent
            pass
        finally:
            line.close()
            with self._changed:
                self._changed.notify_all()

    def _admits(self, said: Dict[str, Any]) -> bool:
        """Take a rank in; one that came twice, or belongs to another launch, is noted."""
        with self._changed:
            rank, fits = said["rank"], said["world"] == self._world and said["run"] == self._run
            fits = fits and (rank != 0 or said["token"] == self.token)
            if fits and rank not in self._came and 0 <= rank < self._world and not self._roster:
                self._came[rank] = said
                self._changed.notify_all()
                return True
            self._strangers.append({name: said[name] for name in ("rank", "world", "run", "host")})
            return False
