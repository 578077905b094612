"""What the probes call: never raises into the job, silent in a forked child until it is told that it is one."""

import itertools
import os
from typing import Any, Callable, Dict, List, Optional, Set

from ddp_probe.shared import schema, settings
from ddp_probe.shared.ours import ours

from . import _models, _once, stderr
from ._writer import FileSpec, Writer
from .span import Span


class Recorder:
    """One process's events: into its file, and to stderr where a person asked for that."""

    def __init__(
        self,
        directory: str,
        stem: Callable[[], str],
        envelope: Dict[str, Any],
        *,
        max_bytes: int,
        echo: str = "warn",
        first: Optional[Callable[[], schema.Event]] = None,
    ) -> None:
        self.disabled = False
        self._envelope = dict(envelope)
        self._echo = echo
        self._strict = bool(settings.get(settings.STRICT))
        self._said = False
        self._plan = FileSpec(_absolute(directory), stem, first, max_bytes, self._strict)
        self._begin_life()

    def _begin_life(self) -> None:
        self.writer = Writer(self._plan, self._envelope)
        self._spans = itertools.count(1)
        self._models: Set[str] = set()

    @property
    def path(self) -> Optional[str]:
        """The file, once it is open."""
        return self.writer.path

    @property
    def lines(self) -> int:
        """How many lines were written."""
        return self.writer.lines

    @property
    def lost(self) -> int:
        """How many could not be."""
        return self.writer.lost

    def bind(self, **envelope: Any) -> None:
        """Change what every following line carries; None takes a field away."""
        self._envelope.update(envelope)
        self.writer.bind(envelope)

    def start(self) -> None:
        """Open the file and write its first line now, and not with the first event."""
        if self._silent():
            return
        try:
            self.writer.start()
        except ours(Exception) as exc:
            self._fault(exc)

    def point(self, event: schema.Event) -> None:
        """Write something that has no duration."""
        self.write(event, "point", {})

    def begin(self, event: schema.Event) -> Span:
        """Write that a call is about to be made; the line is in the file when this returns."""
        span = self.span(event)
        span.begin()
        return span

    def span(self, event: schema.Event) -> Span:
        """Return a call that has yet to begin, so that its owner can end it whatever interrupts the line."""
        return Span(self, next(self._spans), event)

    def warn(self, text: str) -> None:
        """Write a warning, and say it on stderr unless that is switched off or another rank of this host has said the same."""
        self.write(schema.Warned(text=text), "point", {})

    def model(self, digest: str, rows: List[Any]) -> None:
        """Write a model's parameters to models/<digest>.json, once."""
        if self._silent() or digest in self._models:
            return
        self._models.add(digest)
        try:
            self._write_model(digest, rows)
        except ours(Exception) as exc:
            self._models.discard(digest)
            self.writer.lost += 1
            self._fault(exc)

    def close(self) -> None:
        """Let go of the file; a later event opens it again."""
        if not self._silent():
            self.writer.close()

    def forked(self) -> None:
        """Forget the parent's file; an event after this starts a file of this process's own."""
        self.writer.close()
        self.disabled = False
        self._begin_life()

    def write(self, event: schema.Event, phase: str, more: Dict[str, Any]) -> None:
        """Write one line; ``more`` is what the envelope gains for this line alone."""
        if self._silent():
            return
        try:
            self.writer.write(event, phase, more)
        except ours(Exception) as exc:
            self._fault(exc)
        if self._echo != "warn" or type(event) is schema.Warned:
            self._tell(event, phase, more)

    def keep(self, lines: List[Any]) -> None:
        """Keep the last call that failed until the process ends: the file is full."""
        try:
            self.writer.keep(lines)
        except ours(Exception) as exc:
            self._fault(exc)

    def _silent(self) -> bool:
        """Tell whether nothing is to be written: switched off, or in a child whose fork nobody told us of."""
        if self.writer.pid != os.getpid():
            self.forked()
            self.disabled = True
        return self.disabled

    def _write_model(self, digest: str, rows: List[Any]) -> None:
        if not _models.is_name(digest):
            raise ValueError("a digest of letters and digits")
        if _models.exists(self._plan.directory, digest):
            return
        data = _models.lines(rows)
        if self.writer.afford(len(data)):
            _models.write(self._plan.directory, digest, data)

    def _tell(self, event: schema.Event, phase: str, more: Dict[str, Any]) -> None:
        try:
            if self._echo == "all" and type(event) is not schema.Warned:
                stderr.tell(event, phase, self._envelope.get("rank"), more)
            elif self._echo != "off" and isinstance(event, schema.Warned):
                self._say(event.text)
        except ours(Exception):
            if self._strict:
                raise

    def _say(self, text: str) -> None:
        line = _once.line(text, self._plan.directory, self._envelope)
        if line:
            stderr.say(line)

    def _fault(self, exc: Exception) -> None:
        """Say once what hinders us. A full disk is the job's affair; anything else is our own fault, which tests want raised."""
        if not self._said and self._echo != "off" and not (self.path is None and settings.get(settings.BROKEN)):
            self._said = True
            if self.path is None:  # so will all that this process starts fail: the launcher speaks for its ranks
                os.environ[settings.BROKEN.name] = "1"
            stderr.trouble(self._envelope.get("rank"), self.path or self._plan.directory, exc, opened=self.path is not None)
        if self._strict and not isinstance(exc, OSError):
            raise exc


def _absolute(directory: str) -> str:
    """Return the folder as it is now, as the job may change its working directory."""
    try:
        return os.path.abspath(directory)
    except ours(OSError):  # the working directory is gone
        return directory
