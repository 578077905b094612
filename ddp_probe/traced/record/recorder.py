"""What the probes call: never raises into the job, silent in a forked child until it is told that it is one."""

import itertools
import os
import re
import stat
import time
from hashlib import blake2b
from typing import Any, Callable, Dict, List, Optional, Set

from ddp_probe.shared import schema, settings
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.record import stderr
from ddp_probe.traced.record.chain import rows_logger
from ddp_probe.traced.record.files import make_folder, umask
from ddp_probe.traced.record.stderr import who
from ddp_probe.traced.record.writer import FileSpec, Span, Writer

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Whole:
    """The end of the chain for one model: holds what has to be written at once, as its size decides whether there is room for it."""

    data = b""

    def write(self, data: bytes) -> None:
        """Take the rendered rows."""
        self.data = data


def model_lines(rows: List[Any]) -> bytes:
    """Return the rows as they go into the file."""
    whole = Whole()
    rows_logger(whole).write(rows)
    return whole.data


def is_model_name(digest: str) -> bool:
    """Tell whether a digest can be a file's name."""
    return bool(digest) and all(letter.isalnum() or letter in "-_" for letter in digest)


def model_exists(directory: str, digest: str) -> bool:
    """Tell whether some rank has written it already; a symlink of that name counts, and is left alone."""
    return os.path.lexists(os.path.join(directory, "models", digest + ".json"))


def write_model(directory: str, digest: str, data: bytes) -> None:
    """Write ``models/<digest>.json`` whole or not at all."""
    make_folder(os.path.join(directory, "models"))
    # Everything below goes through this descriptor, so that a models/ that is a symlink is refused, not followed.
    folder = os.open(os.path.join(directory, "models"), _FOLDER)
    try:
        _write_in(folder, digest + ".json", data, 0o666 & ~umask(directory))
    finally:
        os.close(folder)


def _write_in(folder: int, name: str, data: bytes, mode: int) -> None:
    draft = ".%s.%d.%x" % (name, os.getpid(), time.monotonic_ns())
    fd = os.open(draft, _CREATE, mode, dir_fd=folder)
    try:
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)
        _publish(folder, draft, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)


def _publish(folder: int, draft: str, name: str) -> None:
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except ours(FileExistsError):
        return
    except ours(OSError):  # a file system without hard links; renaming replaces a symlink, it does not follow it
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


# Ranks of one host that warn alike say it once: the first that makes the empty file named after the text speaks, and nobody waits for anybody.
#
# Two texts are alike if they are the same or differ in the ranks' own numbers alone. In doubt it is said; each rank has its warning in its own file.

# No line's number, no part of a name such as 1.weight, and nothing in a path.
_NUMBER = re.compile(r"\S*/\S*|(?<![\w.])(?<!\.py:)(?<!>:)\d+(?![\w.]*\w)")
_NOTE = " (said once for all ranks of this host that see the same)"


def line_said_once(text: str, directory: str, envelope: Dict[str, Any]) -> str:
    """Return what this rank says of a warning, with whom it speaks for; empty if another rank has spoken."""
    if envelope.get("rank") is None or (envelope.get("world_size") or 1) < 2:
        return text
    name = who(envelope["rank"])
    named = text.startswith(name)
    said = text[len(name) :] if named else text
    if not _is_first(os.path.join(directory, "said"), said, envelope):
        return ""
    return name + _NOTE + said if named else text


def _is_first(folder: str, said: str, envelope: Dict[str, Any]) -> bool:
    """Tell whether nobody has said this yet: neither these very words, device_ids [0] on each rank, nor the like of them, [N] on rank N."""
    own = {str(envelope[name]): name for name in ("local_rank", "rank") if envelope.get(name) is not None}
    try:
        make_folder(folder)
        words = os.path.join(folder, _digest(said, envelope))
        alike = os.path.join(folder, _digest(_NUMBER.sub(lambda found: own.get(found.group(), found.group()), said), envelope))
    except ours(OSError):
        return True
    if os.path.lexists(alike) or not _take(words):
        return False
    if alike == words or _take(alike):
        return True
    with suppress(OSError):  # a rank that is not like these two may have to say these words
        os.unlink(words)
    return False


def _take(path: str) -> bool:
    try:
        os.close(os.open(path, _CREATE, 0o666 & ~umask(os.path.dirname(path))))
    except ours(FileExistsError):
        return False
    except ours(OSError):
        return True
    return True


def _digest(said: str, envelope: Dict[str, Any]) -> str:
    """Name what is said, by which host, to whom, and since which restart of the ranks."""
    parts = (said, str(envelope.get("host")), _destination(), os.environ.get("TORCHELASTIC_RESTART_COUNT", ""))
    return blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _destination() -> str:
    """Name stderr's file: each log gets its line, and a rank that writes to /dev/null claims none. Pipes of all ranks lead to one launcher."""
    seen = os.fstat(2)
    return "" if stat.S_ISFIFO(seen.st_mode) or stat.S_ISSOCK(seen.st_mode) else "%d.%d" % (seen.st_dev, seen.st_ino)


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
        if not is_model_name(digest):
            raise ValueError("a digest of letters and digits")
        if model_exists(self._plan.directory, digest):
            return
        data = model_lines(rows)
        if self.writer.afford(len(data)):
            write_model(self._plan.directory, digest, data)

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
        line = line_said_once(text, self._plan.directory, self._envelope)
        if line:
            stderr.say(line)

    def _fault(self, exc: Exception) -> None:
        """Say once what hinders us. A full disk is the job's affair; anything else is our fault, which tests want raised."""
        if isinstance(exc, RecursionError):  # The stack is full and not the disk; the guard tells whether that is our fault.
            raise exc
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
