"""Reads the lines that were added to files since they were last read, and the lines of new files."""

from typing import Dict, Iterator, List, Sequence

from ddp_probe.reading import ends
from ddp_probe.reading.events import TimedLine, head_of

_CHUNK = 1 << 20


class Tail:
    """Growing files: remembers how far each one has been read."""

    def __init__(self, read: Dict[str, int]) -> None:
        self._lines = dict(read)  # File to the number of its lines already read.
        self._offsets = {file: _offset(file, count) for file, count in read.items()}

    def more(self, files: Sequence[str]) -> List[TimedLine]:
        """Return the new complete lines, by time on the clock of each host."""
        return sorted((entry for file in files for entry in self._of(file)), key=lambda entry: entry.when)

    def _of(self, file: str) -> Iterator[TimedLine]:
        try:
            with open(file, "rb") as stream:
                stream.seek(self._offsets.get(file, 0))
                parts = stream.read(_CHUNK).split(b"\n")
        except OSError:
            return
        for part in parts[:-1]:  # the text after the last line break is still being written
            self._offsets[file] = self._offsets.get(file, 0) + len(part) + 1
            self._lines[file] = self._lines.get(file, 0) + 1
            head = head_of(part)
            if head is not None:
                yield TimedLine(head.when or 0.0, file, self._lines[file], head, part + b"\n")


def _offset(file: str, count: int) -> int:
    """Return the offset of the line after the first `count` lines."""
    offset = 0
    try:
        with open(file, "rb") as stream:
            for _ in range(count):
                offset += len(stream.readline())
    except OSError:
        pass
    return offset


def over(files: Sequence[str]) -> bool:
    """Return whether every process with a file has written its last line."""
    return bool(files) and all(ends.last(file).get("event") in ("process.end", "launcher.end") for file in files)
