"""What the diagnosis needs of one rank's ledger, a few kilobytes of it: what was called at each number of each group, the last calls, the phases.

Equal calls of all ranks are one object: ten thousand ledgers must fit in memory. `whole` reads a ledger again with all that it holds.
"""

import os
import re
from array import array
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe import ledger_schema as schema
from ddp_probe.read import ledger
from ddp_probe.read.ledger import Group, Ledger, Phase, Record, Site

_OPEN = 32  # At most this many open calls are kept: the latest.
_MANY = 1 << 20  # At most this many different calls are told apart.
SENDS = frozenset(("send", "isend", "send_object_list"))
_POINT_TO_POINT = frozenset(one.name for one in schema.OPERATIONS if schema.POINT_TO_POINT <= one.code < schema.ABOUT_GROUPS)
_COLLECTIVES = frozenset(one.name for one in schema.OPERATIONS if one.code < schema.POINT_TO_POINT)


class Call(NamedTuple):
    """What was called, without when and by whom; `root` is -1 if the operation has none."""

    op: str
    elements: int
    tensors: int
    dtype: str
    root: int
    site: Optional[Site]


_UNKNOWN = Call("", 0, 0, "", -1, None)
_CALLS: List[Call] = [_UNKNOWN]  # A call's number is its place here; 0 stands for one that is not known.
_NUMBERS: Dict[Call, int] = {_UNKNOWN: 0}
_GROUPS: Dict[str, Group] = {}


class GroupCalls:
    """The collectives of one rank in one group."""

    __slots__ = ("first", "group", "last", "numbers")

    def __init__(self, group: Group, first: int) -> None:
        self.group = group
        self.first = first  # The earliest number that the ring still holds.
        self.numbers = array("I")  # The calls from there on.
        self.last: Optional[Record] = None

    @property
    def count(self) -> int:
        """Return the number of the last call that was begun."""
        return self.first + len(self.numbers) - 1

    def call(self, seq: int) -> Optional[Call]:
        """Return what was called at a number, if the ring still holds it."""
        if not 0 <= seq - self.first < len(self.numbers):
            return None
        return _CALLS[self.numbers[seq - self.first]] if self.numbers[seq - self.first] else None


class RankLedger(NamedTuple):
    """The ledger of one rank. Times are in seconds since 1970 on the clock of its host; `problem` says why there is less than there should be."""

    path: str
    problem: str = ""
    pid: int = 0
    rank: int = -1
    groups: Dict[str, GroupCalls] = {}
    pairs: Dict[Tuple[str, int, bool], int] = {}  # Group, peer and whether it sends, to the number of the last call.
    last: Optional[Record] = None  # The latest call that the job itself made.
    open: Tuple[Record, ...] = ()
    phases: Tuple[Phase, ...] = ()
    torn: int = 0
    closed: bool = False
    moved: float = 0.0
    base: float = 0.0

    @property
    def complete(self) -> bool:
        """Tell whether what is not in it did not happen."""
        return not (self.problem or self.torn or self.closed)

    def when(self, mono_ns: int) -> float:
        """Return a time of the ledger as seconds since 1970."""
        return self.base + mono_ns * 1e-9


def ranks_of(text: str) -> List[int]:
    """Return the ranks of 0-2,5 or 0-62/2."""
    found: List[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?:/(\d{1,7}))?)?", part.strip())
        if match is None:
            raise ValueError("%r is not a list of ranks." % text)
        first = int(match.group(1))
        found.extend(range(first, int(match.group(2) or first) + 1, max(int(match.group(3) or 1), 1)))
    return found


def find(log: str) -> str:
    """Return the ledger of the process that wrote this log; the newest if it began several, an empty string if there is none."""
    base, found = log[: -len(".jsonl")], ""
    if not log.endswith(".jsonl"):
        return ""
    if os.path.exists(base + schema.SUFFIX):
        found = base + schema.SUFFIX
        number = 1
        while os.path.exists("%s.%d%s" % (base, number, schema.SUFFIX)) and not os.path.exists("%s.%d.jsonl" % (base, number)):
            found = "%s.%d%s" % (base, number, schema.SUFFIX)
            number += 1
    return found


def whole(path: str, data: Optional[bytes] = None) -> Ledger:
    """Return all that a ledger holds."""
    return ledger.parse(data, path) if data is not None else ledger.read(path)


def read(path: str, data: Optional[bytes] = None) -> RankLedger:
    """Return what is kept of a ledger."""
    return keep(whole(path, data))


def keep(full: Ledger) -> RankLedger:
    """Return what is kept of what a ledger holds."""
    head = full.header
    if head is None:
        return RankLedger(full.path, full.problem or "The file is empty.")
    groups: Dict[str, GroupCalls] = {}
    for known in full.groups:
        groups[known.id] = GroupCalls(_GROUPS.setdefault(known.id, known), 1)
    pairs: Dict[Tuple[str, int, bool], int] = {}
    own = [record for record in full.records if not record.is_inner]
    for record in own:
        _add(record, groups, pairs)
    opened = [record for record in own if record.is_open][-_OPEN:]
    base = (head.wall_ns - head.mono_ns) * 1e-9
    return RankLedger(
        full.path,
        full.problem,
        head.pid,
        head.rank,
        groups,
        pairs,
        own[-1] if own else None,
        tuple(opened),
        tuple(full.phases),
        full.torn,
        bool(head.closed_ns),
        base + head.moved_ns * 1e-9,
        base,
    )


def _add(record: Record, groups: Dict[str, GroupCalls], pairs: Dict[Tuple[str, int, bool], int]) -> None:
    if record.group is None:
        return
    if record.op in _POINT_TO_POINT:
        key = (record.group.id, record.peer, record.op in SENDS)
        pairs[key] = max(record.seq, pairs.get(key, 0))
    elif record.op in _COLLECTIVES:
        calls = groups.setdefault(record.group.id, GroupCalls(record.group, record.seq))
        if calls.last is None:
            calls.first = record.seq
        missing = record.seq - calls.first - len(calls.numbers)
        if missing < 0 or missing > schema.RECORDS:
            return
        calls.numbers.extend([0] * missing)
        calls.numbers.append(_number(Call(record.op, record.elements, record.tensors, record.dtype, record.peer, record.site)))
        calls.last = record


def _number(call: Call) -> int:
    found = _NUMBERS.get(call)
    if found is None:
        if len(_CALLS) >= _MANY:
            return 0
        found = _NUMBERS[call] = len(_CALLS)
        _CALLS.append(call)
    return found
