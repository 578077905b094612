"""Reads dumps of torch's Flight Recorder in a run's folder: which collectives a rank has issued, according to torch.

torch writes PREFIX<rank> as a pickle, newer versions also JSON. A dump is somebody else's file: it is read without unpickling any object, with a
limit on its size, and what is not as expected is a sentence in `problem`, not an exception.
"""

import os
import re
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

import msgspec

from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import BrokenError, UnknownError
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import Mapping, PickleStream
from ddp_probe.reading import fold_file
from ddp_probe.shared.regular_files import NOT_REGULAR, open_bytes
from ddp_probe.shared.schema import UNREADABLE, Site
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_NAME = re.compile(r"rank_?(\d{1,7})(?:\.(?:json|pickle|pkl))?$")
MOST_BYTES = 1 << 26
_MOST_ENTRIES = 100_000
_MOST_FRAMES = 64
_MOST_CHARACTERS = 500
_JSON = msgspec.json.Decoder()


class _RefusedError(Exception):
    """The file is not a dump that can be read."""


class RecorderEntry(NamedTuple):
    """One collective, or one point-to-point call, as the recorder has it."""

    number: int  # Number of the entry in the dump, counted from 1.
    group: str  # torch's name of the group.
    seq: int  # Number of the collective in its group, those that C++ has issued included.
    op: str  # torch's name for it, without the backend: all_reduce, _all_gather_base.
    backend: str
    sizes: Tuple[Tuple[int, ...], ...]
    state: str  # scheduled, started or completed; gloo leaves it at scheduled.
    created_ns: int  # Wall clock.
    frames: Tuple[Site, ...]  # The Python stack, innermost frame first; empty if the dump has none.
    is_p2p: bool

    @property
    def elements(self) -> Optional[int]:
        """Return the elements of the only tensor; None if there are several or none."""
        if len(self.sizes) != 1:
            return None
        count = 1
        for size in self.sizes[0]:
            count *= size
        return count


class Recording(NamedTuple):
    """One dump: its entries in order, or why they cannot be read. `written` is when the file was written, in seconds since 1970."""

    path: str
    rank: int
    entries: Tuple[RecorderEntry, ...] = ()
    written: float = 0.0
    problem: str = ""


def is_dump(name: str) -> bool:
    """Return whether a file of this name is read as a dump of the Flight Recorder."""
    return _NAME.search(name) is not None


def find(folders: Iterable[str]) -> Dict[int, str]:
    """Return the dumps in these folders by rank; the newest if a rank has several."""
    newest: Dict[int, Tuple[float, str]] = {}
    for folder in folders:
        for name in _names(folder):
            match = _NAME.search(name)
            path = os.path.join(folder, name)
            if match is not None:
                newest[int(match.group(1))] = max(newest.get(int(match.group(1)), (0.0, "")), (_written(path), path))
    return {rank: path for rank, (_, path) in newest.items()}


def read(path: str, rank: int) -> Recording:
    """Read one dump."""
    try:
        with open_bytes(fold_file.real_place(path)) as file:
            return Recording(path, rank, tuple(_entries(_loads(file))), _written(path))
    except OSError as exc:
        why = "it is not a regular file" if exc.strerror == NOT_REGULAR else exc.strerror
        return Recording(path, rank, problem=why or type(exc).__name__)
    except (_RefusedError, BrokenError, UnknownError) as exc:
        return Recording(path, rank, problem=str(exc).rstrip("."))


def _names(folder: str) -> List[str]:
    try:
        held = fold_file.held_names(folder)
        return os.listdir(folder) if held is None else held
    except OSError:
        return []


def _written(path: str) -> float:
    try:
        return os.stat(fold_file.real_place(path)).st_mtime
    except OSError:
        return 0.0


def _loads(file: BinaryIO) -> Any:
    size = os.fstat(file.fileno()).st_size
    if size > MOST_BYTES:
        raise _RefusedError(say("it has {size} bytes, more than {most}", size=size, most=MOST_BYTES))
    if file.read(1) != b"{":
        return _unpickled(FileRange(file.fileno(), 0, size))
    file.seek(0)
    try:
        return _JSON.decode(file.read(MOST_BYTES))
    except UNREADABLE as exc:
        raise _RefusedError(say("its JSON is broken: {reason}", reason=quoted(str(exc)[:100]))) from None


def _unpickled(source: FileRange) -> Any:
    machine = Machine()
    dump = machine.run(PickleStream(source))
    if machine.globals:
        name = next(iter(machine.globals))[:80]
        raise _RefusedError(say("it names {name}, which plain data does not need", name=name))
    return dump


def _entries(dump: Any) -> Iterator[RecorderEntry]:
    entries = dump.get("entries") if isinstance(dump, (dict, Mapping)) else None
    if not isinstance(entries, list):
        raise _RefusedError("it does not hold a list of entries")
    for number, raw in enumerate(entries[-_MOST_ENTRIES:], 1 + max(0, len(entries) - _MOST_ENTRIES)):
        entry = _entry(raw, number) if isinstance(raw, (dict, Mapping)) else None
        if entry is None:
            raise _RefusedError(say("entry {number} is not one of the Flight Recorder", number=number))
        yield entry


def _entry(raw: Union[Dict[Any, Any], Mapping], number: int) -> Optional[RecorderEntry]:
    name, group = raw.get("profiling_name"), raw.get("process_group")
    if type(name) is not str or type(group) not in (list, tuple) or not group:
        return None
    backend, _, op = name[:_MOST_CHARACTERS].rpartition(":")
    return RecorderEntry(
        number,
        _str(group[0]),
        _int(raw.get("collective_seq_id")),
        op.partition(" ")[0],
        backend,
        _sizes(raw.get("input_sizes")),
        _str(raw.get("state")),
        _int(raw.get("time_created_ns")),
        tuple(_frames(raw.get("frames"))),
        raw.get("is_p2p") is True,
    )


def _int(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 63 else 0


def _str(value: Any) -> str:
    return value[:_MOST_CHARACTERS] if type(value) is str else ""


def _sizes(value: Any) -> Tuple[Tuple[int, ...], ...]:
    if type(value) is not list:
        return ()
    return tuple(tuple(map(_int, size[:16])) for size in value[:16] if type(size) in (list, tuple))


def _frames(value: Any) -> Iterator[Site]:
    for frame in value[:_MOST_FRAMES] if type(value) is list else ():
        if isinstance(frame, (dict, Mapping)):
            yield Site(_str(frame.get("filename")), _int(frame.get("line")), _str(frame.get("name")))
