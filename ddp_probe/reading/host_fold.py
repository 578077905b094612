"""What the reader keeps of some processes, as one value that can be written, sent and merged: reading the folds of all hosts is reading all files.

Equal events are in it once. The processes of a fold have the same order, and the same numbers for lines, as those that were read from the files.
"""

import os
import time
from array import array
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import msgspec

import ddp_probe
from ddp_probe.reading import alive
from ddp_probe.reading.fold_file import InvalidFoldError
from ddp_probe.reading.folded_ledger import FoldedLedger, LedgerFolder, LedgerTables, LedgerUnfolder, little_endian
from ddp_probe.reading.inventory import Inventory
from ddp_probe.reading.logged_call import KeptCalls, KeptKind, LoggedCall, LogLine
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared import schema
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

VERSION = 1
_Data = bytes  # Numbers as array.tobytes() writes them on a little-endian machine.
_PLAIN = "rank local_rank world_size host pid run start_when last_when last_world_size lines bytes full holes unknown".split()


class FoldedProcess(msgspec.Struct, array_like=True):
    """A process whose file has been read; events are numbers, 0 for none."""

    file: str
    rank: Optional[int]
    local_rank: Optional[int]
    world_size: Optional[int]
    host: str
    pid: int
    run: str
    start_when: float
    last_when: float
    last_world_size: Optional[int]
    lines: int
    bytes: int
    full: bool
    holes: int
    unknown: Dict[str, int]
    start: int
    end: int
    last_line: int
    open: List[Tuple[int, int, float]]  # Event, line, time.
    kinds: int
    call_events: _Data
    call_lines: _Data
    call_times: _Data
    state: Optional[str]  # The kernel's letter for it when it was folded; None if this host cannot tell.
    ledger_file: str
    ledger: Optional[FoldedLedger]


class FoldedInventory(msgspec.Struct):
    """What was read, and what could not be read."""

    files: List[str] = []
    lines: int = 0
    bytes: int = 0
    skipped: Dict[str, Dict[str, int]] = {}
    unreadable: Dict[str, str] = {}


class HostFold(msgspec.Struct):
    """Some processes of a run.

    fold: What the reader keeps of the files of one host, as one file that can be sent. The folds of all hosts are read as one run.
    """

    fold: int  # The version of this form.
    ddp_probe: str = ""
    made: float = 0.0  # When the files were read, in seconds since 1970.
    folders: List[str] = []
    launch: int = 0  # The launch that was asked for, if these files are of several.
    inventory: FoldedInventory = msgspec.field(default_factory=FoldedInventory)
    events: List[schema.AnyEvent] = []  # type: ignore[valid-type]  # declared from a table
    kinds: List[Dict[str, Tuple[int, int, int, int]]] = []
    ledgers: LedgerTables = msgspec.field(default_factory=LedgerTables)
    processes: List[FoldedProcess] = []


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODER = msgspec.msgpack.Decoder(HostFold)


def fold(
    processes: Sequence[LoggedProcess], inventory: Inventory, folders: Sequence[str] = (), launch: int = 0, name: Callable[[str], str] = str
) -> HostFold:
    """Return processes as a value; each has to be as its file was read, before clocks are aligned. A function names their files in it."""
    return _Folder(name).fold(processes, inventory, folders, launch)


def _made(processes: Sequence[LoggedProcess], folded: Sequence[FoldedProcess]) -> float:
    """Return the time as of which this is known. If no process runs, that is when the last one wrote: then a fold of the same files is the same."""
    if any(folded_process.state for folded_process in folded):
        return time.time()
    return max((process.last_when for process in processes), default=0.0)


class _Folder:
    """Numbers what the processes share."""

    def __init__(self, name: Callable[[str], str]) -> None:
        self._name = name
        self._events: List[schema.Event] = []
        self._numbers: Dict[int, int] = {}  # By id, which is valid because the events stay alive.
        self._kinds: Dict[int, int] = {}
        self._ledgers = LedgerFolder()
        self._kept_kinds: List[Dict[str, Any]] = []

    def fold(self, processes: Sequence[LoggedProcess], inventory: Inventory, folders: Sequence[str], launch: int) -> HostFold:
        folded = [self._process(process) for process in processes]
        read = FoldedInventory()
        read.files, read.lines, read.bytes = list(map(self._name, inventory.files)), inventory.lines, inventory.bytes
        read.skipped = {self._name(file): reasons for file, reasons in inventory.skipped.items()}
        read.unreadable = {self._name(file): why for file, why in inventory.unreadable.items()}
        return HostFold(
            VERSION,
            ddp_probe.__version__,
            _made(processes, folded),
            list(folders),
            launch,
            read,
            self._events,
            self._kept_kinds,
            self._ledgers.tables,
            folded,
        )

    def _process(self, process: LoggedProcess) -> FoldedProcess:
        kept, ledger = process.kept, process.ledger
        plain = {name: getattr(process, name) for name in _PLAIN}
        return FoldedProcess(
            file=self._name(process.file),
            **plain,
            start=self._event(process.start),
            end=self._event(process.end),
            last_line=process.last_at.line,
            open=[(self._event(call.begin), call.line, call.when) for call in process.open],
            kinds=self._kinds_of(kept.kinds),
            call_events=_data(array("I", map(self._event, kept.events))),
            call_lines=_data(kept.lines),
            call_times=_data(kept.times),
            state=alive.state_of(process),
            ledger_file=self._name(process.ledger_file) if process.ledger_file else "",
            ledger=None if ledger is None else self._ledgers.fold(ledger),
        )

    def _event(self, event: Optional[schema.Event]) -> int:
        if event is None:
            return 0
        number = self._numbers.get(id(event))
        if number is None:
            self._events.append(event)
            number = self._numbers[id(event)] = len(self._events)
        return number

    def _kinds_of(self, kinds: Dict[str, KeptKind]) -> int:
        if id(kinds) not in self._kinds:
            self._kinds[id(kinds)] = len(self._kept_kinds)
            self._kept_kinds.append(kinds)
        return self._kinds[id(kinds)]


def encode(host_fold: HostFold) -> bytes:
    """Return a fold as bytes."""
    return _ENCODE(host_fold)


def decode(data: bytes) -> HostFold:
    """Return the fold of these bytes, which may be anybody's."""
    try:
        host_fold = _DECODER.decode(data)
    except UNREADABLE as exc:
        raise InvalidFoldError(say("It is not valid: {reason}.", reason=quoted(exc))) from exc
    if host_fold.fold != VERSION:
        raise InvalidFoldError(
            say(
                "It is of version {version}; this ddp_probe reads version {newest}.",
                version=host_fold.fold,
                newest=VERSION,
            )
        )
    return host_fold


def unfold(host_fold: HostFold, shared: SharedParts, prefix: str = "") -> List[LoggedProcess]:
    """Return the processes of a fold; the names of their files begin with the prefix."""
    try:
        return _Unfolder(host_fold, shared, prefix).processes()
    except (IndexError, TypeError, ValueError) as exc:
        raise InvalidFoldError(say("It is not consistent: {reason}.", reason=quoted(exc))) from exc


class _Unfolder:
    """Makes processes of folded ones."""

    def __init__(self, host_fold: HostFold, shared: SharedParts, prefix: str) -> None:
        self._fold, self._shared, self._prefix = host_fold, shared, prefix
        self._events: List[Any] = [None, *map(shared.lightened, host_fold.events)]
        self._kinds = [shared.kinds({name: KeptKind(*kind) for name, kind in kinds.items()}) for kinds in host_fold.kinds]
        self._ledgers = LedgerUnfolder(host_fold.ledgers, shared.sequences)

    def processes(self) -> List[LoggedProcess]:
        return [self._process(folded) for folded in self._fold.processes]

    def _process(self, folded: FoldedProcess) -> LoggedProcess:
        process = LoggedProcess(self._prefix + folded.file)
        for name in _PLAIN:
            setattr(process, name, getattr(folded, name))
        process.host, process.run = self._shared.text(folded.host), self._shared.text(folded.run)
        process.start, process.end = self._events[folded.start], self._events[folded.end]
        process.last_at = LogLine(process.file, folded.last_line)
        process.open = tuple(LoggedCall(self._events[event], process.file, line, when) for event, line, when in folded.open)
        process.kept = self._calls(process.file, folded)
        process.state = folded.state
        if folded.ledger is not None:
            process.hold_ledger(self._prefix + folded.ledger_file, self._ledgers.unfold(self._prefix + folded.ledger_file, folded.ledger))
        return process

    def _calls(self, file: str, folded: FoldedProcess) -> KeptCalls:
        kinds = self._kinds[folded.kinds]
        numbers, lines, times = _numbers(folded.call_events), _numbers(folded.call_lines), little_endian(_filled(array("d"), folded.call_times))
        events = tuple([self._events[number] for number in numbers])
        kept = sum(kind.kept for kind in kinds.values())
        if not len(events) == len(lines) == len(times) == 2 * kept or any(event is None for event in events[::2]):
            raise ValueError(say("the calls of {file} do not fit together", file=os.path.basename(file)))
        return KeptCalls(file, kinds, events, self._shared.lines(lines), times)


def _data(numbers: "array[Any]") -> bytes:
    return little_endian(numbers).tobytes()


def _numbers(data: bytes) -> "array[int]":
    return little_endian(_filled(array("I"), data))


def _filled(numbers: "array[Any]", data: bytes) -> "array[Any]":
    numbers.frombytes(data)
    return numbers
