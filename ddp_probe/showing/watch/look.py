"""One look at a run: where each rank stands, how fast it goes, and who stands out."""

import os
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.reading import lateness, rank_stacks
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.lateness import LateRanks, StepMember, Waited
from ddp_probe.reading.whole_ledger import Header, LedgerSite
from ddp_probe.showing.watch import files, joining, outliers
from ddp_probe.showing.watch import position as positions
from ddp_probe.showing.watch.glimpse import Glimpses
from ddp_probe.showing.watch.held_memory import HeldMemory
from ddp_probe.showing.watch.position import Position

_FEW = 64  # Of more ranks, only the last calls are read.
_SEVERAL = 3
_WRITTEN = 2e9  # Nanoseconds: a rank writes its ledger into the file four times a second, on a busy host less often.
_SLACK = 0.1  # Seconds; file systems write coarse times.


class Look(NamedTuple):
    """What one look has found."""

    when: float
    ranks: List[Position]
    speed: Dict[int, Optional[float]]  # Steps a second by rank; None if no step was seen.
    outliers: Dict[int, str]  # Ranks that stand out, and why.
    absent: List[int]  # Ranks of the job without a ledger here.
    problems: Dict[str, str]  # Files that could not be read, and why.
    memory: Dict[int, int] = {}  # Bytes on the card with the most, of the ranks whose log tells.
    waited: Dict[int, Waited] = {}  # How long a rank has waited for the slowest in the last minute.
    late: Optional[LateRanks] = None

    @property
    def over(self) -> bool:
        """Return whether no process of the run is there any more, as far as this host knows."""
        return bool(self.ranks) and all(each.state in positions.OVER for each in self.ranks)


class LiveView:
    """Looks at a run, again and again."""

    def __init__(self, folders: List[str]) -> None:
        self.folders = folders
        self._glimpses = Glimpses()
        self._memory = HeldMemory()
        self._joining = joining.JoiningRanks(folders)
        self._before: Dict[int, Tuple[int, int, float]] = {}  # Rank to process, step and time of the look before.

    def look(self) -> Look:
        """Read every ledger once."""
        paths = files.ledgers(self.folders)
        ended_at = _last_written(self.folders)
        ranks: Dict[int, Tuple[int, Position]] = {}
        headers: Dict[int, Tuple[str, Header]] = {}
        problems: Dict[str, str] = {}
        for path in paths:
            found = self._glimpses.of(path)
            if found.problem:
                problems[path] = found.problem
            position = positions.of(found, ended_at)
            head = found.header
            if position is not None and head is not None and (position.rank not in ranks or ranks[position.rank][0] <= head.wall_ns):
                ranks[position.rank], headers[position.rank] = (head.wall_ns, position), (path, head)
        size = max(ranks.values(), key=lambda one: one[0])[1].world_size if ranks else 0
        chosen = [ranks[rank][1] for rank in sorted(ranks) if rank < size or size <= 0]  # A job may go on with fewer ranks.
        absent = [rank for rank in range(min(size, 1 << 20)) if rank not in ranks]
        kept = {each.rank: self._glimpses.kept(headers[each.rank][0], len(chosen) <= _FEW) for each in chosen}
        out = outliers.reasons(chosen, kept, absent)
        chosen = [_nearer(each, *headers[each.rank]) if each.rank in out else each for each in chosen]
        if not out and len(chosen) <= _FEW and not any(each.waits for each in chosen):
            by_stack = [_nearer(each, *headers[each.rank]) for each in chosen]
            if all(nearer is not each for nearer, each in zip(by_stack, chosen)):  # Each has written that it stands.
                chosen, out = by_stack, joining.elsewhere(by_stack)
        told = {each.rank: self._memory.of(files.log_of(headers[each.rank][0])) for each in chosen}
        memory = {rank: held for rank, held in told.items() if held is not None}
        compared = {rank: lateness.member(one.steps, one.sums, one.groups, one.pairs) for rank, one in kept.items()}
        late = lateness.late(compared)
        if late is not None and not out:
            host = lateness.whole_host({each.rank: each.host for each in chosen}, late)
            out = dict.fromkeys(late.ranks, late.reason + (", on host %s" % host if host else ""))
        without = self._joining.positions(set(ranks)) if absent or not ranks else []
        if not paths and not without:
            raise files.no_ledger(self.folders)
        if not chosen:
            out = joining.elsewhere(without)
        chosen = sorted([*chosen, *without], key=lambda each: each.rank)
        return Look(time.time(), chosen, self._speeds(chosen), out, absent, problems, memory, _waits(compared, chosen), late)

    def _speeds(self, ranks: List[Position]) -> Dict[int, Optional[float]]:
        """Return steps a second since the look before, or of the latest steps at the first one."""
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
        return _pace(position)


def _pace(position: Position) -> Optional[float]:
    """Return how many of the latest steps a second; 0 if the next one lasts for several times as long as they did."""
    took = position.steps.took
    ended = position.steps.ended_ns if took else position.since_ns
    each = 1000 * sum(took) / len(took) if took else (position.since_ns - position.began_ns) / position.step
    if each <= 0:
        return None
    return 0.0 if position.now_ns - ended > max(_SEVERAL * each, _WRITTEN) else 1e9 / each


def _waits(compared: Dict[int, StepMember], ranks: List[Position]) -> Dict[int, Waited]:
    """Return how long each rank has waited in the last minute, by all steps of the ring: those that are compared are fewer."""
    every = {each.rank: compared[each.rank]._replace(steps=each.steps) for each in ranks if each.rank in compared and each.steps.numbers}
    return lateness.waits({**compared, **every}, {each.rank: each.now_ns for each in ranks})


def _nearer(position: Position, path: str, head: Header) -> Position:
    """Return a rank that is in no call with the line of its last stacks: its ledger has only that of its last call."""
    if position.state != positions.RUNNING or position.waits:
        return position
    found = rank_stacks.recorded(files.log_of(path))
    if found is None or found.when + _SLACK < (head.wall_ns + head.moved_ns - head.mono_ns) / 1e9:
        return position
    site = job_line(rank_stacks.main_frames(found.threads))
    return position if site is None else position._replace(site=LedgerSite(site.file, site.line, site.function))


def _last_written(folders: List[str]) -> float:
    """Return when a log of the run was written last, for runs that have ended."""
    found = 0.0
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    found = max(found, entry.stat().st_mtime)
    return found
