"""Process groups for the ledger, each as the number of a text, and the running sums of what its ring of records forgets."""

import itertools
import json
import sys
import weakref
from collections import Counter
from hashlib import blake2b
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import PLACES, SUM
from ddp_probe.shared.masks import masked
from ddp_probe.traced.facts.process_groups import group_backends, group_description, held, is_group
from ddp_probe.traced.record.ledger_memory import LedgerFile

_WRAP = (1 << 64) - 1
_Key = Tuple[int, int, int]
Row = List[Any]
"""Calls, time inside, the bar, sum of the times of entry, the record counted last: one value, so that no exception
finds half of it changed. The bar is the longest time, but at most what is slow: the hot path compares a time with it alone.

After it the operation, which is 0 in the row of all that found none, the longest time, and from when on a call is slow."""

NEVER = 1 << 62
"""A time that no call takes, in nanoseconds."""


class Sums:
    """The rows of one ledger. The hot path replaces what it finds there."""

    def __init__(self, mapped: Any, slow_ns: int = NEVER) -> None:
        self._map = mapped
        self._rest: _Key = (0, 0, 0)
        self._slow_ns = slow_ns
        self.rows: Dict[_Key, Row] = {self._rest: self._empty(0)}

    def row(self, op: int, group: int, site: int) -> Row:
        """Return the row of these calls: a new one if they have none, or the first if all are taken."""
        key = op, group, site
        found = self.rows.get(key)
        if found is None:
            if len(self.rows) >= schema.SUMS:
                return self.rows[self._rest]
            found = self.rows.setdefault(key, self._empty(op))
        return found

    def put(self) -> None:
        """Copy the rows into the memory of the ledger."""
        for place, ((op, group, site), row) in enumerate(list(self.rows.items())):
            (calls, inside, _, entered, _), longest = row[0], row[2]
            at = PLACES.sums + place * SUM.size
            SUM.pack_into(self._map, at, op, group, site, 0, calls, inside, longest, entered & _WRAP)

    def _empty(self, op: int) -> Row:
        return [(0, 0, 0, 0, 0), op, 0, self._slow_ns]


def raised_bar(row: Row, ns: int) -> int:
    """Take note of a time above the bar, and return the new bar."""
    row[2] = max(row[2], ns)
    return int(min(row[2], row[3]))


def count_call(row: Row, record: int, entered: int, ns: int) -> None:
    """Count a call that has returned; the hot path does the same without a call."""
    calls, inside, bar, began, _ = row[0]
    row[0] = calls + 1, inside + ns, raised_bar(row, ns) if ns > bar else bar, began + entered, record


def add_wait(row: Row, ns: int) -> bool:
    """Add the time of a wait for work whose call has been counted; tell whether it is slow."""
    calls, inside, bar, began, record = row[0]
    if ns <= bar:
        row[0] = calls, inside + ns, bar, began, record
        return False
    row[0] = calls, inside + ns, raised_bar(row, ns), began, record
    return bool(ns > row[3])


# Process groups for the ledger: each as the number of a text, with an id that is the same on all of its ranks, and the counters of its calls.

_CHARACTERS = 1_000


class Numbers:
    """Numbers calls, in any thread. `used` is the number of the latest that has a record: a number without one is given again."""

    __slots__ = ("next", "used")

    def __init__(self) -> None:
        self.used = 0
        self.back()

    def back(self) -> None:
        """Take back what has been given since."""
        self.next: Callable[[], int] = itertools.count(self.used + 1).__next__


class Known:
    """One group: its number in the file, its ranks, and what numbers its calls."""

    __slots__ = ("calls", "number", "peers", "ranks", "ref", "rows")

    def __init__(self, number: int, ranks: Tuple[int, ...], ref: Callable[[], Any]) -> None:
        self.number = number
        self.ranks = ranks
        self.ref = ref
        self.calls = Numbers()
        self.rows: Dict[int, Row] = {}
        """The row of the sums that each line had last, by the number of the line."""
        self.peers: Dict[Tuple[int, bool], Numbers] = {}  # of point-to-point calls, by peer and direction


class Groups:
    """Every group that this process is in, by id(); nothing here keeps a group alive."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        self._created: Counter[Tuple[int, ...]] = Counter()
        self.none = Known(0, (), lambda: None)
        self.default: Optional[Known] = None
        self.by_id: Dict[int, Known] = {}

    def known(self, group: Any) -> Known:
        """Return a group that a call is given; None is torch's group of all ranks."""
        if group is None:
            return self.default or self.find(None)
        found = self.by_id.get(id(group))
        return found if found is not None and found.ref() is group else self.find(group)

    def find(self, group: Any) -> Known:
        """Return a group that has not been met yet, or whose id another one has had; `none` for what is not a group of torch's."""
        self.look()
        if group is None:
            group = default_group()
            if group is None:
                return self.none
            self.default = self._get(group)
            return self.default
        return self._get(group) if is_group(group) else self.none

    def _get(self, group: Any) -> Known:
        found = self.by_id.get(id(group))
        return found if found is not None and found.ref() is group else self.none

    def look(self) -> None:
        """Take note of new groups in the order in which torch has made them, so that each rank counts those with the same ranks alike."""
        self.default = None
        for group, ranks in _table():
            if self._get(group) is self.none:
                self._add(group, ranks)

    def _add(self, group: Any, ranks: Tuple[int, ...]) -> None:
        self._created[ranks] += 1
        nth = self._created[ranks]
        number = self._file.text(schema.GROUP, _described(group, ranks, nth))
        self.by_id[id(group)] = Known(number, ranks, weakref.ref(group))


def _c10d() -> Any:
    return sys.modules.get("torch.distributed.distributed_c10d")


def _world() -> Any:
    return getattr(_c10d(), "_world", None)  # torch from 2.0 on


def default_group() -> Any:
    """Return torch's group of all ranks; None if there is none."""
    world = _world()
    return world.default_pg if world is not None else _c10d().GroupMember.WORLD


def _table() -> List[Tuple[Any, Tuple[int, ...]]]:
    """Return the groups and their global ranks in the order of the group's own ranks."""
    world = _world()
    table = world.pg_group_ranks if world is not None else _c10d()._pg_group_ranks
    return [(group, tuple(sorted(ranks, key=ranks.__getitem__))) for group, ranks in list(table.items()) if is_group(group)]


def _described(group: Any, ranks: Tuple[int, ...], nth: int) -> str:
    world = _world()
    names = world.pg_names if world is not None else _c10d()._pg_names
    return described(ranks, nth, group_backends(group), str(held(names, group) or ""), group_description(group))


def described(ranks: Tuple[int, ...], nth: int, backends: Dict[str, str], name: str, description: str) -> str:
    """Return the text of a group; the id is the same on each of its ranks."""
    found = {
        "id": blake2b(repr((ranks, nth)).encode(), digest_size=8).hexdigest(),
        "size": len(ranks),
        "ranks": compact(ranks)[:_CHARACTERS],
        "nth": nth,
        "backends": backends,
        "name": masked(name, 100),
        "description": masked(description, 100),
    }
    return json.dumps(found, separators=(",", ":"))


def compact(ranks: Sequence[int]) -> str:
    """Return ranks as 0-7,12 or with a step as 0-62/2."""
    parts, at = [], 0
    while at < len(ranks):
        step = ranks[at + 1] - ranks[at] if at + 1 < len(ranks) else 1
        end = at
        while end + 1 < len(ranks) and ranks[end + 1] - ranks[end] == step and step > 0:
            end += 1
        if end - at < 2 and step != 1:
            end = at
        parts.append(str(ranks[at]) if end == at else "%d-%d%s" % (ranks[at], ranks[end], "" if step == 1 else "/%d" % step))
        at = end + 1
    return ",".join(parts)
