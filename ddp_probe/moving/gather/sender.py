"""The side of a host: folds its files of the run that rank 0 names, and sends the fold, and with --logs the files."""

import hashlib
import os
import socket
import stat
import tempfile
import time
from typing import Any, Iterator, List, NamedTuple, Tuple

from ddp_probe.moving.bundle import contents
from ddp_probe.moving.gather import choice
from ddp_probe.moving.gather.messages import (
    MOST_FILES,
    PIECE,
    VERSION,
    Begin,
    ExitCode,
    Finished,
    Folding,
    GatherLine,
    Have,
    Hello,
    Holds,
    Leave,
    Nothing,
    Offer,
    Sent,
    Wanted,
)
from ddp_probe.reading import find, fold
from ddp_probe.shared.errors import ProbeError
from ddp_probe.shared.meeting import MeetingPlace, RefusedError
from ddp_probe.shared.regular_files import open_descriptor

_LONGEST = 1000  # Characters of an error that are said.
_EVERY = 1.0  # Seconds between two messages that the fold goes on.
_Digest = Any  # hashlib's objects have no public type on Python 3.8.


class RunFile(NamedTuple):
    """One file of the run, and its name in the run's folder."""

    name: str
    path: str


def bring(line: GatherLine, place: MeetingPlace, named: str, *, leads: bool, token: str = "") -> int:
    """Send what this host has; return the exit code of the report. Raises OSError and ValueError if the connection ends before."""
    local_run = choice.here(named) if leads else choice.LocalRun(None, "", "")
    line.say(Hello(VERSION, place.rank, place.world, place.run, token, socket.gethostname(), leads, local_run.run, local_run.why))
    wanted = line.wait(Wanted)
    if wanted.refused:
        raise RefusedError(wanted.refused)
    if leads and wanted.run is not None:
        _bring(line, wanted, local_run)
    return line.wait(ExitCode).code


def _bring(line: GatherLine, wanted: Wanted, local_run: choice.LocalRun) -> None:
    assert wanted.run is not None
    folder = choice.folder_of(wanted.run, local_run)
    if not folder:
        line.say(Nothing("There is none in %s." % os.path.abspath(find.root())))
        return
    try:
        _send_run(line, folder, logs=wanted.logs)
    except ProbeError as exc:
        line.say(Nothing(("%s %s" % (exc.what, exc.why))[:_LONGEST]))


def _send_run(line: GatherLine, folder: str, *, logs: bool) -> None:
    sources = find.sources([folder])
    line.say(Holds([_said(path) for path in sources.events][:MOST_FILES]))
    left_out = set(line.wait(Leave).out)
    events = [path for path in sources.events if _said(path) not in left_out]
    if events:
        _send(line, "", _folded(line, [folder] if len(events) == len(sources.events) else events))
        for log in _files(sources, left_out) if logs else ():
            try:
                file = open_descriptor(log.path, os.O_NOFOLLOW)
            except OSError:  # a link, somebody else's, or removed meanwhile
                continue
            _send(line, log.name, file)
    line.say(Finished())


def _said(path: str) -> str:
    """Return the name of a file as a message can hold it."""
    return os.fsencode(os.path.basename(path)).decode("utf-8", "backslashreplace")[:255]


def _folded(line: GatherLine, paths: List[str]) -> int:
    """Return a descriptor of the fold, which has no name any more: a host that is killed while it sends leaves nothing."""
    try:
        with tempfile.TemporaryDirectory(prefix="ddp_probe-gather-") as scratch:
            target = os.path.join(scratch, "run.fold")
            with open(target, "wb") as file:
                fold.write(paths, file, _Heartbeat(line))
            return open_descriptor(target, os.O_NOFOLLOW)
    except ConnectionError:  # rank 0 has ended
        raise
    except OSError as exc:  # TMPDIR of this host is full, for example
        raise ProbeError(what="The fold could not be written.", why=exc.strerror or str(exc), what_to_do="") from exc


class _Heartbeat:
    """Says now and then that the fold goes on."""

    def __init__(self, line: GatherLine) -> None:
        self._line, self._next = line, 0.0

    def __call__(self, read: int, everything: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            self._line.say(Folding(read, everything))


def _files(sources: find.Sources, left_out: "set[str]") -> Iterator[RunFile]:
    """Yield the files of the run, logs first; if two folders have a file of the same name, that of the first."""
    order = [kind.name for kind in contents.KINDS]
    taken = set(left_out)
    for part in sorted(contents.of(sources).parts, key=lambda part: order.index(part.kind)):
        name = part.place.split("/", 2)[-1]
        if name not in taken and choice.accepted(name):
            taken.add(name)
            yield RunFile(name, part.file)


def _send(line: GatherLine, name: str, file: int) -> None:
    """Send a file, from the byte on that rank 0 does not have. It may grow meanwhile: what it held when it was offered is sent."""
    try:
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode):
            line.say(Offer(name, status.st_size))
            have = line.wait(Have)
            if not have.not_wanted:
                _send_from(line, file, status.st_size, have)
    finally:
        os.close(file)


def _send_from(line: GatherLine, file: int, size: int, have: Have) -> None:
    start, digest = _known(file, size, have)
    line.say(Begin(start))
    for piece in _pieces(file, start, size):
        digest.update(piece)
        line.send_piece(piece)
    line.send_piece(b"")
    line.say(Sent(digest.hexdigest()))


def _known(file: int, size: int, have: Have) -> Tuple[int, _Digest]:
    """Return the byte from which rank 0 lacks this file, and the digest of what precedes it."""
    digest = hashlib.sha256()
    if 0 < have.size <= size:
        for piece in _pieces(file, 0, have.size):
            digest.update(piece)
        if digest.hexdigest() == have.sha256:
            return have.size, digest
    return 0, hashlib.sha256()


def _pieces(file: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = os.pread(file, min(PIECE, end - start), start)
        if not piece:  # it has become shorter
            return
        start += len(piece)
        yield piece
