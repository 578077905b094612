"""One look at a run: where each rank stands, how fast it goes, what it holds on its card, and who stands out."""

import os
import time
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import msgspec

from ddp_probe.reading import glance, job_source, log_lines, rank_stacks
from ddp_probe.reading.find import written
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.whole_ledger import Header, LedgerSite
from ddp_probe.shared import schema
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.showing.watch import ask, outliers, watched_files
from ddp_probe.showing.watch import position as positions
from ddp_probe.showing.watch.position import OVER, Glimpses, Position, state_by_log
from ddp_probe.standing import lateness
from ddp_probe.standing.lateness import LateRanks, StepMember, Waited
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import ONE

_TAIL = 1 << 16
_SIGN = b'"device.state"'
_decode = msgspec.json.Decoder(schema.DeviceState).decode


class HeldMemory:
    """Remembers of each log how long it was, and what it said."""

    def __init__(self) -> None:
        self._known: Dict[str, Tuple[int, Optional[int]]] = {}

    def of(self, log: str) -> Optional[int]:
        """Return the bytes that tensors hold on the card with the most; None if no line has it."""
        before, held = self._known.get(log, (-1, None))
        try:
            size = os.stat(log).st_size
            if size != before:
                with open_bytes(log) as stream:
                    stream.seek(max(0, size - _TAIL))
                    held = _last(stream.read(_TAIL), held)
                self._known[log] = (size, held)
        except OSError:
            return held
        return held

    def of_ranks(self, ledgers: Dict[int, str]) -> Dict[int, int]:
        """Return the bytes of each rank of which a line has them; the ranks are named by their ledgers."""
        held = {rank: self.of(watched_files.log_of(path)) for rank, path in ledgers.items()}
        return {rank: size for rank, size in held.items() if size is not None}


def _last(data: bytes, held: Optional[int]) -> Optional[int]:
    for line in reversed(data.split(b"\n")):
        if _SIGN in line:
            try:
                return max((memory.allocated or 0 for memory in _decode(line).devices), default=held)
            except UNREADABLE:  # A line with a part missing, or another event that quotes this one.
                continue
    return held


# Ranks that run and have no ledger: they have made no process group yet, or the ledger is off. Their stacks show where they are.

_EVERY = 5.0  # Seconds between two requests for stacks: each is a line in every log.
_WAIT = 2.0
PATIENCE = 3.0


class JoiningRanks:
    """Asks for the stacks of such ranks again and again, and remembers since when each stands at its line."""

    def __init__(self, folders: List[str]) -> None:
        self._folders = folders
        self._asked = 0.0
        self._sites: Dict[int, LedgerSite] = {}
        self._since: Dict[int, float] = {}

    def positions(self, led: Set[int]) -> List[Position]:
        """Return the positions of the ranks that have a log and run, and are not among those with a ledger."""
        logs = {rank_stacks.rank_of(log): log for log in watched_files.logs(self._folders)}
        joining = [
            position for rank, log in sorted(logs.items()) if rank not in led for position in [_joining(rank, log)] if position.state not in OVER
        ]
        if joining and time.monotonic() - self._asked >= _EVERY:
            self._ask({position.rank for position in joining})
        now = time.monotonic()
        return [position._replace(site=self._sites.get(position.rank), seconds=now - self._since.get(position.rank, now)) for position in joining]

    def _ask(self, ranks: Set[int]) -> None:
        for stacks in ask.collect(self._folders, ranks.__contains__, _WAIT).stacks:
            line = job_line(rank_stacks.main_frames(stacks.threads))
            site = LedgerSite(line.file, line.line, line.function) if line is not None else LedgerSite()
            if self._sites.get(stacks.rank) != site:
                self._sites[stacks.rank], self._since[stacks.rank] = site, time.monotonic()
        self._asked = time.monotonic()


def elsewhere(positions: Sequence[Position]) -> Dict[int, str]:
    """Return why a rank stands out that stands at another line than most, if all stand by their stacks."""
    stand = [position for position in positions if position.site is not None and position.seconds >= PATIENCE]
    most: List[Tuple[LedgerSite, int]] = Counter(position.site for position in stand if position.site is not None).most_common(1)
    if not most or most[0][1] * 2 <= len(stand) or len(stand) < len(positions):
        return {}
    why = say("{they:is|are} at another line than {count} ranks, and no call of torch.distributed says why", they=ONE, count=most[0][1])
    return {position.rank: why for position in stand if position.site != most[0][0]}


def waits_for(folders: List[str]) -> Iterator[str]:
    """Yield for what there is nothing to show yet, for as long as the run has no log of a rank and has not ended."""
    while not watched_files.logs(folders) and any(glance.at(folder).ended == "running" for folder in folders):
        yield "no rank has imported torch yet"


def _joining(rank: int, log: str) -> Position:
    first = log_lines.first(log)
    return Position(
        rank=rank,
        host=str(first.get("host", "")),
        pid=_number(first.get("pid")),
        state=state_by_log(log, _number(first.get("pid")), str(first.get("host", "")), _number(first.get("born")), str(first.get("boot", ""))),
        world_size=_number(first.get("world_size")),
        phase="",
        step=0,
        op="",
        number=0,
        waits=False,
        group=None,
        peer=-1,
        site=None,
        since_ns=0,
        seconds=0.0,
        began_ns=0,
        moved_ns=0,
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


_FEW = 64  # If there are more ranks, only the last calls are read.
_SEVERAL = 3
_WRITTEN = 2e9  # Nanoseconds: a rank writes its ledger into the file four times a second, on a busy host less often.
_SLACK = 0.1  # Seconds; file systems write coarse times.
_SETTLES = 0.5  # Seconds in which ranks that move on together have all written that.


class Look(NamedTuple):
    """The result of one look."""

    when: float
    ranks: List[Position]
    speed: Dict[int, Optional[float]]  # Steps a second by rank; None if no step was seen.
    outliers: Dict[int, str]  # Ranks that stand out, and why.
    absent: List[int]  # Ranks of the job without a ledger here.
    problems: Dict[str, str]  # Files that could not be read, and why.
    memory: Dict[int, int] = {}  # Bytes on the fullest card, of the ranks whose log has them.
    waited: Dict[int, Waited] = {}  # How long a rank has waited for the slowest in the last minute.
    late: Optional[LateRanks] = None

    @property
    def over(self) -> bool:
        """Return whether no process of the run is there any more, as far as this host knows."""
        return bool(self.ranks) and all(position.state in positions.OVER for position in self.ranks)


class LiveView:
    """Looks at a run, again and again."""

    def __init__(self, folders: List[str]) -> None:
        self.folders = folders
        self._glimpses = Glimpses()
        self._memory = HeldMemory()
        self._joining = JoiningRanks(folders)
        self._before: Dict[int, Tuple[int, int, float]] = {}  # Rank to process, step and time of the look before.

    def look(self) -> Look:
        """Read every ledger; once more if ranks moved on meanwhile, as their timeouts end a hang: parts of two moments name anybody."""
        look, headers = self._read()
        if look.outliers and len(headers) <= _FEW and self._has_moved(headers):
            time.sleep(_SETTLES)
            look, _ = self._read()
        return look._replace(speed=self._speeds(look.ranks))

    def _has_moved(self, headers: Dict[int, Tuple[str, Header]]) -> bool:
        """Tell whether a rank has moved since its header was read."""
        now = [(self._glimpses.of(path).header, before) for path, before in headers.values()]
        return any(head is not None and head.moved_ns != before.moved_ns for head, before in now)

    def _read(self) -> Tuple[Look, Dict[int, Tuple[str, Header]]]:
        """Return what the ledgers say, without the speed; and the header that each rank's ledger had."""
        paths = watched_files.ledgers(self.folders)
        ended_at = _last_written(self.folders)
        ranks: Dict[int, Tuple[int, Position]] = {}
        headers: Dict[int, Tuple[str, Header]] = {}
        problems: Dict[str, str] = {}
        for path in paths:
            ledger = self._glimpses.of(path)
            if ledger.problem:
                problems[path] = ledger.problem
            position = positions.of(ledger, ended_at)
            head = ledger.header
            if position is not None and head is not None and (position.rank not in ranks or ranks[position.rank][0] <= head.wall_ns):
                ranks[position.rank], headers[position.rank] = (head.wall_ns, position), (path, head)
        size = max(ranks.values(), key=lambda pair: pair[0])[1].world_size if ranks else 0
        chosen = [ranks[rank][1] for rank in sorted(ranks) if rank < size or size <= 0]  # A job may go on with fewer ranks.
        absent = [rank for rank in range(min(size, 1 << 20)) if rank not in ranks]
        few = len(chosen) <= _FEW
        kept = {position.rank: self._glimpses.kept(headers[position.rank][0], few) for position in chosen}
        with job_source.relative_to(_working_folder(headers)):
            out = outliers.reasons(chosen, kept, absent)
        out = {rank: joined([why, _held(*headers[rank])], by="") if rank in headers else why for rank, why in out.items()}
        standing_out = [position for position in chosen if position.rank in out]
        nearer = {position.rank: _nearer(position, *headers[position.rank]) for position in standing_out}
        chosen = [nearer.get(position.rank, position) for position in chosen]
        if not out and few and not any(position.waits for position in chosen):
            by_stack = [_nearer(position, *headers[position.rank]) for position in chosen]
            # Each has written that it stands still.
            if all(near is not position for near, position in zip(by_stack, chosen)):
                chosen, out = by_stack, elsewhere(by_stack)
        memory = self._memory.of_ranks({position.rank: headers[position.rank][0] for position in chosen})
        compared = {rank: lateness.member(pair.steps, pair.sums, pair.groups, pair.pairs) for rank, pair in kept.items()}
        late = lateness.late(compared)
        if late is not None and not out:
            host = lateness.whole_host({position.rank: position.host for position in chosen}, late)
            on_host = say(", on host {host}", host=host) if host else ""
            out = dict.fromkeys(late.ranks, joined([late.reason, on_host], by=""))
        without = self._joining.positions(set(ranks)) if absent or not ranks else []
        if not paths and not without:
            raise watched_files.no_ledger(self.folders)
        if not chosen:
            out = elsewhere(without)
        chosen = sorted([*chosen, *without], key=lambda position: position.rank)
        return Look(time.time(), chosen, {}, out, absent, problems, memory, _waits(compared, chosen), late), headers

    def _speeds(self, ranks: List[Position]) -> Dict[int, Optional[float]]:
        """Return steps a second since the look before, or of the latest steps at the first one."""
        now = time.monotonic()
        speeds = {position.rank: self._speed(position, now) for position in ranks}
        self._before = {position.rank: (position.pid, position.step, now) for position in ranks}
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
    step_ns = 1000 * sum(took) / len(took) if took else (position.since_ns - position.began_ns) / position.step
    if step_ns <= 0:
        return None
    return 0.0 if position.now_ns - ended > max(_SEVERAL * step_ns, _WRITTEN) else 1e9 / step_ns


def _waits(compared: Dict[int, StepMember], ranks: List[Position]) -> Dict[int, Waited]:
    """Return how long each rank has waited in the last minute, by all steps of the ring: those that are compared are fewer."""
    by_ring = dict(compared)
    for position in ranks:
        if position.rank in compared and position.steps.numbers:
            by_ring[position.rank] = compared[position.rank]._replace(steps=position.steps)
    return lateness.waits(by_ring, {position.rank: position.now_ns for position in ranks})


def _nearer(position: Position, path: str, head: Header) -> Position:
    """Return a rank that is in no call with the line of its last stacks: its ledger has only that of its last call."""
    if position.state != positions.RUNNING or position.waits:
        return position
    stacks = rank_stacks.recorded(watched_files.log_of(path))
    if stacks is None or stacks.when + _SLACK < (head.wall_ns + head.moved_ns - head.mono_ns) / 1e9:
        return position
    site = job_line(rank_stacks.main_frames(stacks.threads))
    return position if site is None else position._replace(site=LedgerSite(site.file, site.line, site.function))


def _held(path: str, head: Header) -> str:
    """Say that native code holds the GIL in a rank that has not moved, if its launcher saw that."""
    seen = rank_stacks.silent(watched_files.log_of(path))
    is_new = seen is not None and not seen.paused and seen.mono_ns > head.moved_ns
    return say(": no Python code runs in it, native code holds the GIL") if is_new else ""


def _working_folder(headers: Dict[int, Tuple[str, Header]]) -> str:
    """Return where the job runs, as the first rank here has written it; empty if none has."""
    for path, _ in headers.values():
        return str(log_lines.first(watched_files.log_of(path)).get("cwd", ""))
    return ""


def _last_written(folders: List[str]) -> float:
    """Return when a log of the run was written last, for runs that have ended."""
    latest = 0.0
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    latest = max(latest, written(entry.path))
    return latest
