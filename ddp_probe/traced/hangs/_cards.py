"""The child of a launcher that asks the vendor's tool for the load of the cards: its answers become lines of the launcher's log."""

import os
import signal
import time
from typing import Dict, Optional

import msgspec

from ddp_probe.shared import schema, settings
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.record import Recorder, brief

_SHARE = 4
"""Part of what a process may write that these lines may take: how the children ended is worth more."""
_TURN = 0.25
_PATIENCE = 1.0
_MOST = 1 << 16
_CANNOT = "Not asked: the launcher handles SIGCHLD, or waits for whichever child ends next."


class CardsChild:
    """Starts the child, reads what it prints from time to time, and ends it."""

    def __init__(self, folder: str, recorder: Recorder, environ: Dict[str, str]) -> None:
        self._recorder = recorder
        self._room = settings.get(settings.MAX_BYTES) // _SHARE
        self._data = b""
        self._due = 0.0
        self._pid, self._out = 0, -1
        if not brief.can_start():
            recorder.point(schema.CardsState(problem=_CANNOT))
            return
        self._pid, self._out = brief.start(brief.CARDS, [str(settings.get(settings.CARDS)), folder], environ)
        os.set_blocking(self._out, False)

    def look(self) -> None:
        """Write what has been answered since the last look; end the child once its share of the log is used up."""
        now = time.monotonic()
        if self._out < 0 or now < self._due:
            return
        self._due = now + _TURN
        more = self._read()
        if more is None:
            return
        if not more or self._room <= 0:
            self.end()
        *lines, self._data = (self._data + more).split(b"\n")
        for line in lines:
            self._room -= len(line)
            self._recorder.point(msgspec.json.decode(line, type=schema.CardsState))

    def _read(self) -> Optional[bytes]:
        """Return what there is to read; empty once the child has ended, None if it has printed nothing."""
        try:
            return os.read(self._out, _MOST)
        except ours(BlockingIOError):
            return None

    def end(self) -> None:
        """Ask the child to end, which ends its tool first; make sure of it."""
        self.forget()
        pid, self._pid = self._pid, 0
        if not pid:
            return
        with suppress(ChildProcessError, ProcessLookupError):  # The job has waited for every child of the process.
            os.kill(pid, signal.SIGTERM)
            until = time.monotonic() + _PATIENCE
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    return
                time.sleep(0.01)

    def forget(self) -> None:
        """Let go of the pipe: the child of a fork has nothing to do with it."""
        out, self._out = self._out, -1
        if out >= 0:
            os.close(out)
