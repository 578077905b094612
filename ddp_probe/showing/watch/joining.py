"""Ranks that run and have no ledger: they have made no process group yet, or the ledger is off. Their stacks tell where they stand."""

import time
from collections import Counter
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from ddp_probe.reading import glance, log_lines, rank_stacks
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.showing.watch import ask, files
from ddp_probe.showing.watch.position import OVER, Position, state_by_log

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
        logs = {files.rank_of(log): log for log in files.logs(self._folders)}
        found = [one for rank, log in sorted(logs.items()) if rank not in led for one in [_of(rank, log)] if one.state not in OVER]
        if found and time.monotonic() - self._asked >= _EVERY:
            self._ask({one.rank for one in found})
        now = time.monotonic()
        return [one._replace(site=self._sites.get(one.rank), seconds=now - self._since.get(one.rank, now)) for one in found]

    def _ask(self, ranks: Set[int]) -> None:
        for one in ask.collect(self._folders, ranks.__contains__, _WAIT).found:
            line = job_line(rank_stacks.main_frames(one.threads))
            site = LedgerSite(line.file, line.line, line.function) if line is not None else LedgerSite()
            if self._sites.get(one.rank) != site:
                self._sites[one.rank], self._since[one.rank] = site, time.monotonic()
        self._asked = time.monotonic()


def elsewhere(positions: Sequence[Position]) -> Dict[int, str]:
    """Return why a rank stands out that stands at another line than most, if all stand by their stacks."""
    stand = [one for one in positions if one.site is not None and one.seconds >= PATIENCE]
    most: List[Tuple[LedgerSite, int]] = Counter(one.site for one in stand if one.site is not None).most_common(1)
    if not most or most[0][1] * 2 <= len(stand) or len(stand) < len(positions):
        return {}
    why = "is at another line than %d ranks, and no call of torch.distributed says why" % most[0][1]
    return {one.rank: why for one in stand if one.site != most[0][0]}


def waits_for(folders: List[str]) -> Iterator[str]:
    """Yield for what there is nothing to show yet, for as long as the run has no log of a rank and has not ended."""
    while not files.logs(folders) and any(glance.at(folder).ended == "running" for folder in folders):
        yield "no rank has imported torch yet"


def _of(rank: int, log: str) -> Position:
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
