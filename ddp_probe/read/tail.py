"""Goes on with files that were read to some line: what has been added to them since, and to files that have come."""

from typing import Dict, Iterator, List, Sequence

from ddp_probe.read import ends
from ddp_probe.read.events import Entry, head_of
from ddp_probe.read.fold import seconds

_CHUNK = 1 << 20


class Tail:
    """Files that grow: knows how far each one has been read."""

    def __init__(self, read: Dict[str, int]) -> None:
        self._lines = dict(read)  # File to how many of its lines have been read.
        self._offsets = {file: _offset(file, count) for file, count in read.items()}

    def more(self, files: Sequence[str]) -> List[Entry]:
        """Return the whole lines that are new, by the time that each host's clock tells."""
        return sorted((entry for file in files for entry in self._of(file)), key=lambda entry: entry.when)

    def _of(self, file: str) -> Iterator[Entry]:
        try:
            with open(file, "rb") as stream:
                stream.seek(self._offsets.get(file, 0))
                parts = stream.read(_CHUNK).split(b"\n")
        except OSError:
            return
        for part in parts[:-1]:  # what follows the last line break is still being written
            self._offsets[file] = self._offsets.get(file, 0) + len(part) + 1
            self._lines[file] = self._lines.get(file, 0) + 1
            head = head_of(part)
            if head is not None:
                yield Entry(seconds(head.ts) or 0.0, file, self._lines[file], head, part + b"\n")


def _offset(file: str, count: int) -> int:
    """Return where the line after so many begins."""
    offset = 0
    try:
        with open(file, "rb") as stream:
            for _ in range(count):
                offset += len(stream.readline())
    except OSError:
        pass
    return offset


def over(files: Sequence[str]) -> bool:
    """Tell that every process that has a file has written its last line."""
    return bool(files) and all(ends.last(file).get("event") in ("process.end", "launcher.end") for file in files)
