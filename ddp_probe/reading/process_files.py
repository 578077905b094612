"""Reads the files of many processes, on several cores if they are large: children send folds of some of them, and the order is that of the files."""

import os
import stat
from typing import Callable, Iterable, List, NamedTuple, Optional, Sequence

from ddp_probe.reading import host_fold, on_cores, rank_ledger
from ddp_probe.reading._lines import lines
from ddp_probe.reading.model import Inventory, LoggedProcess
from ddp_probe.reading.process_reader import ProcessReader
from ddp_probe.reading.shared import SharedParts

Progress = Callable[[int, int], None]  # bytes read, total bytes
_LARGE = 32 << 20  # Bytes; fewer are read faster than children are started.
_TOGETHER = 64  # Files of one part: a child sends the fold of a part.


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
    together = max(_TOGETHER, len(files) // on_cores.MOST + 1)
    parts = [files[first : first + together] for first in range(0, len(files), together)]
    readers = min(cores or on_cores.available(), len(parts))
    if readers < 2 or sum(map(_on_disk, files)) < _LARGE:
        return _here(files, inventory, shared, meter)
    return _on_several(parts, readers, inventory, shared, meter)


def _on_disk(log: str) -> int:
    """Return how many bytes of a process there are to read: of its ledger, what has been written."""
    try:
        return size(log) + os.stat(log[: -len("jsonl")] + "ledger").st_blocks * 512
    except OSError:
        return size(log)


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


class _Part(NamedTuple):
    """What was read of some files."""

    processes: List[LoggedProcess]
    inventory: Inventory


def _on_several(parts: Sequence[Sequence[str]], readers: int, inventory: Inventory, shared: SharedParts, meter: Meter) -> List[LoggedProcess]:
    """Return the processes of all parts, read by this process and its children."""

    def here(number: int) -> _Part:
        read = Inventory()
        processes = _here(parts[number], read, shared, meter)
        for process in processes:
            process.read_ledger()  # Now, as children do: the rules ask one after another.
        return _Part(processes, read)

    def there(number: int) -> bytes:
        read = Inventory()
        return host_fold.encode(host_fold.fold(_here(parts[number], read, shared, Meter((), None)), read))

    def arrived(data: bytes) -> _Part:
        folded = host_fold.decode(data)
        meter.add(folded.inventory.bytes)
        read = Inventory()
        read.add(folded.inventory)
        return _Part(host_fold.unfold(folded, shared), read)

    found = on_cores.each(len(parts), readers - 1, here, there, arrived)
    for part in found:
        inventory.add(part.inventory)
    return [process for part in found for process in part.processes]
