"""What was read of a launch, and what could not be read."""

from typing import Any, Dict, List, Optional


class Inventory:
    """What was read, and what could not be read."""

    def __init__(self) -> None:
        self.files: List[str] = []
        self.lines = 0
        self.bytes = 0
        self.skipped: Dict[str, Dict[str, int]] = {}  # file to reason to number of lines
        self.unreadable: Dict[str, str] = {}  # file to reason
        self.notes: List[str] = []
        self.clock_spread: Optional[float] = None  # Seconds between the hosts' clocks, if they share events.

    def skip(self, file: str, reason: str, count: int = 1) -> None:
        """Count a line that could not be read."""
        reasons = self.skipped.setdefault(file, {})
        reasons[reason] = reasons.get(reason, 0) + count

    def add(self, other: Any, prefix: str = "") -> None:
        """Add what another inventory says; the names of its files get the prefix."""
        self.files += [prefix + file for file in other.files]
        self.lines += other.lines
        self.bytes += other.bytes
        self.skipped.update({prefix + file: reasons for file, reasons in other.skipped.items()})
        self.unreadable.update({prefix + file: why for file, why in other.unreadable.items()})
