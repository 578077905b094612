"""What the tests of real runs have in common: the programs' folder, and the events that one run leaves."""

from pathlib import Path
from typing import Any, Callable, Dict, List

PROGRAMS = Path(__file__).parent / "programs"


class Run:
    """What one run printed and wrote."""

    def __init__(self, done: Any, root: Path, read: Callable[..., List[Dict[str, Any]]]) -> None:
        self.done = done
        self.root = root
        self._read = read

    def file(self, kind: str) -> Path:
        """Return the one file of a rank or of the launcher."""
        (path,) = self.root.rglob("%s.*.jsonl" % kind)
        return path

    def events(self, kind: str, event: str = "", phase: str = "") -> List[Dict[str, Any]]:
        """Return the events of one process, by name and phase where they are given."""
        found = self._read(self.file(kind))
        return [each for each in found if event in ("", each["event"]) and phase in ("", each["phase"])]

    def one(self, kind: str, event: str, phase: str) -> Dict[str, Any]:
        """Return the one event of that name and phase."""
        found = self.events(kind, event, phase)
        assert len(found) == 1, (kind, event, phase, found)
        return found[0]


def line_of(program: str, mark: str) -> int:
    """Return the number of the one line of a program that holds a mark."""
    lines = (PROGRAMS / program).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, start=1) if mark in line]
    return number
