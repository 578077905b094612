"""Reads the files of many processes, on several cores if they are large: each child folds some of them, and the order is that of the files."""

import os
import stat
import struct
from typing import BinaryIO, Callable, Dict, Iterable, List, Optional, Sequence

from ddp_probe.read import host_fold, rank_ledger
from ddp_probe.read._lines import lines
from ddp_probe.read.model import Inventory, LoggedProcess
from ddp_probe.read.process_reader import ProcessReader
from ddp_probe.read.shared import SharedParts

Progress = Callable[[int, int], None]  # bytes read, total bytes
_LARGE = 32 << 20  # Bytes; fewer are read faster than children are started.
_TOGETHER = 128  # Files of one fold that a child sends.
_SIZE = struct.Struct("<Q")


class Meter:
    """Reports how many of all bytes have been read."""

    def __init__(self, files: Iterable[str], progress: Optional[Progress]) -> None:
        self._progress = progress
        self._read = 0
        self._all = sum(map(size, files)) if progress else 0

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        self._read += count
        if self._progress is not None:
            self._progress(self._read, max(self._all, self._read))


def size(file: str) -> int:
    """Return the size of a file; 0 if it cannot be told."""
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def unreadable(file: str) -> str:
    """Return why a file cannot be read; opening a pipe or a device would block forever."""
    try:
        mode = os.stat(file).st_mode
    except OSError as exc:
        return exc.strerror or str(exc)
    return "" if stat.S_ISREG(mode) else "Not a regular file."


def read(files: Sequence[str], inventory: Inventory, shared: SharedParts, meter: Meter, cores: int = 0) -> List[LoggedProcess]:
    """Return the processes of these files, in their order, read on at most this many cores."""
    parts = [files[first : first + _TOGETHER] for first in range(0, len(files), _TOGETHER)]
    readers = min(cores or _cores(), len(parts))
    if readers < 2 or sum(map(_on_disk, files)) < _LARGE:
        return _here(files, inventory, shared, meter)
    return [process for part in _in_children(parts, readers, inventory, shared, meter) for process in part]


def _on_disk(log: str) -> int:
    """Return how many bytes of a process there are to read: of its ledger, what has been written."""
    try:
        return size(log) + os.stat(log[: -len("jsonl")] + "ledger").st_blocks * 512
    except OSError:
        return size(log)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _here(files: Sequence[str], inventory: Inventory, shared: SharedParts, meter: Meter) -> List[LoggedProcess]:
    """Read files one after another in this process."""
    found = [process for file in files for process in [_process(file, inventory, shared, meter)] if process is not None]
    for process in found:
        process.ledger_file = rank_ledger.find(process.file)
    return found


def _process(file: str, inventory: Inventory, shared: SharedParts, meter: Meter) -> Optional[LoggedProcess]:
    fault = unreadable(file)
    reader = ProcessReader(file, inventory, shared)
    if not fault:
        try:
            with open(file, "rb") as stream:
                read = 0
                for number, line, whole in lines(stream):
                    reader.line(number, line, whole)
                    read += len(line)
                    if read >= 1 << 18:
                        meter.add(read)
                        reader.process.bytes, read = reader.process.bytes + read, 0
                reader.process.bytes += read
                meter.add(read)
        except OSError as exc:
            fault = exc.strerror or str(exc)
    if fault:
        inventory.unreadable[file] = fault
        return None
    process = reader.finish()
    inventory.files.append(file)
    inventory.lines += process.lines
    inventory.bytes += process.bytes
    if not process.lines:
        inventory.unreadable[file] = "It contains no event."
        return None
    return process


# --- on several cores


def _in_children(
    parts: Sequence[Sequence[str]], readers: int, inventory: Inventory, shared: SharedParts, meter: Meter
) -> Iterable[List[LoggedProcess]]:
    """Yield the processes of each part; child n reads the parts n, n + readers, and so on. A part that a child does not send is read here."""
    children: Dict[int, BinaryIO] = {}
    try:
        for number in range(readers):
            children[number] = _child(parts[number::readers], [stream.fileno() for stream in children.values()])
        for number, part in enumerate(parts):
            data = _received(children[number % readers])
            if data is None:
                yield _here(part, inventory, shared, meter)
                continue
            folded = host_fold.decode(data)
            inventory.add(folded.inventory)
            meter.add(folded.inventory.bytes)
            yield host_fold.unfold(folded, shared)
    finally:
        for stream in children.values():
            stream.close()  # A child that still sends ends with that.
        for _ in children:
            os.wait()


def _child(parts: Sequence[Sequence[str]], others: Sequence[int]) -> BinaryIO:
    """Start a child that sends the fold of each part; return where they arrive."""
    here, there = os.pipe()
    if os.fork():
        os.close(there)
        return open(here, "rb")  # closed by who asked for it
    try:
        for number in (here, *others):
            os.close(number)
        shared = SharedParts()
        with open(there, "wb") as stream:
            for part in parts:
                inventory = Inventory()
                data = host_fold.encode(host_fold.fold(_here(part, inventory, shared, Meter((), None)), inventory))
                stream.write(_SIZE.pack(len(data)) + data)
                stream.flush()
    finally:
        os._exit(0)  # Nothing of the parent may run here; what is missing is read there.


def _received(stream: BinaryIO) -> Optional[bytes]:
    """Return one fold, or None if the child has ended before it sent that."""
    head = stream.read(_SIZE.size)
    data = stream.read(_SIZE.unpack(head)[0]) if len(head) == _SIZE.size else b""
    return data if data and len(data) == _SIZE.unpack(head)[0] else None
