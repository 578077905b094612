"""One look at a run: where each rank stands, how fast it goes, and who stands out."""

import os
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.watch import files, outliers
from ddp_probe.watch import position as positions
from ddp_probe.watch.glimpse import Glimpses
from ddp_probe.watch.position import Position


class Look(NamedTuple):
    """What one look has found."""

    when: float
    ranks: List[Position]
    speed: Dict[int, Optional[float]]  # Steps a second by rank; None if no step was seen.
    outliers: Dict[int, str]  # Ranks that stand out, and why.
    absent: List[int]  # Ranks of the job without a ledger here.
    problems: Dict[str, str]  # Files that could not be read, and why.

    @property
    def over(self) -> bool:
        """Return whether no process of the run is there any more, as far as this host knows."""
        return bool(self.ranks) and all(each.state in positions.OVER for each in self.ranks)


class LiveView:
    """Looks at a run, again and again."""

    def __init__(self, folders: List[str]) -> None:
        self.folders = folders
        self._glimpses = Glimpses()
        self._before: Dict[int, Tuple[int, int, float]] = {}  # Rank to process, step and time of the look before.

    def look(self) -> Look:
        """Read every ledger once."""
        paths = files.ledgers(self.folders)
        if not paths:
            raise files.no_ledger(self.folders)
        ended_at = _last_written(self.folders)
        ranks: Dict[int, Tuple[int, Position]] = {}
        problems: Dict[str, str] = {}
        for path in paths:
            found = self._glimpses.of(path)
            if found.problem:
                problems[path] = found.problem
            position = positions.of(found, ended_at)
            born = found.header.wall_ns if found.header is not None else 0
            if position is not None and (position.rank not in ranks or ranks[position.rank][0] <= born):
                ranks[position.rank] = (born, position)
        size = max(ranks.values(), key=lambda one: one[0])[1].world_size if ranks else 0
        chosen = [ranks[rank][1] for rank in sorted(ranks) if rank < size or size <= 0]  # A job may go on with fewer ranks.
        absent = [rank for rank in range(min(size, 1 << 20)) if rank not in ranks]
        return Look(time.time(), chosen, self._speeds(chosen), outliers.reasons(chosen), absent, problems)

    def _speeds(self, ranks: List[Position]) -> Dict[int, Optional[float]]:
        """Return steps a second since the look before, or since the start at the first one."""
        now = time.monotonic()
        speeds = {each.rank: self._speed(each, now) for each in ranks}
        self._before = {each.rank: (each.pid, each.step, now) for each in ranks}
        return speeds

    def _speed(self, position: Position, now: float) -> Optional[float]:
        before = self._before.get(position.rank)
        if not position.step:
            return None
        if before is not None and before[0] == position.pid:
            return (position.step - before[1]) / max(now - before[2], 1e-3)
        lived = (position.since_ns - position.began_ns) / 1e9 + position.seconds
        return position.step / lived if lived > 0 else None


def _last_written(folders: List[str]) -> float:
    """Return when a log of the run was written last, for runs that have ended."""
    found = 0.0
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    found = max(found, entry.stat().st_mtime)
    return found
