"""The place where one rank stands, from its ledger: in a call that has not come to an end, in a phase, or gone; since when, and for how long.

For a job that runs and for one that has ended. What only the logs show is added in judging/ledgers.py.
"""

from typing import Any, Dict, Generic, Iterable, List, NamedTuple, Optional, Set, Tuple, TypeVar

from ddp_probe.reading.rank_ledger import GroupCalls, RankLedger
from ddp_probe.reading.whole_ledger import Group, Phase, Record
from ddp_probe.shared.ledger_schema import ranks_of

PATIENCE = 3.0
"""Seconds that others must have waited before a rank of a job that runs stands out: a rank may always be a moment behind."""
LONG = frozenset(("validate", "test", "checkpoint", "save", "load"))
_AROUND = frozenset(("train",))  # It spans whole steps, so it does not show where a rank is.


class Left(NamedTuple):
    """How and when a rank stopped taking part, and its exception, if it raised one."""

    how: str
    when: float
    failure: Any = None  # A Failed; watch reads no logs.
    site: Any = None  # The line of the job that it left from: of its exception, of its exit call, or of what it runs at exit.
    exits: bool = False  # It has left its program, and runs what is registered for its exit.


class LedgerStanding:
    """The place where one rank stands: its ledger, the call or the phase that it is in, and until when that is known.

    Times are on the clock of its host, plus `offset`.
    """

    __slots__ = ("inside", "is_alive", "ledger", "left", "offset", "phase", "rank", "runs", "until", "waited_out")

    def __init__(self, rank: int, ledger: RankLedger, offset: float, inside: Optional[Record], phase: Optional[Phase]) -> None:
        self.rank = rank
        self.ledger = ledger
        self.offset = offset
        self.inside = inside
        self.phase = phase
        self.left: Optional[Left] = None
        self.waited_out = False
        self.runs = self.is_alive = True  # It went on after its last line: it runs now, or did when a signal from outside arrived.
        self.until = 0.0

    def records(self) -> List[Record]:
        """Return the calls that the ledger holds."""
        raise NotImplementedError

    def sequence(self) -> List[Record]:
        """Return the calls and the passes that the ledger holds, in order."""
        raise NotImplementedError

    @property
    def is_working(self) -> bool:
        """Tell whether it is in a phase that is known to take long."""
        return self.inside is None and self.left is None and self.phase is not None and self.phase.name in LONG

    @property
    def stands(self) -> bool:
        """Tell whether it was seen at a line since it has moved; a ledger alone does not show that."""
        return False

    @property
    def resumed(self) -> float:
        """Return when it ran again after a pause, on the run's common clock; a ledger alone does not show that."""
        return 0.0

    @property
    def is_joining(self) -> bool:
        """Tell whether it is in init_process_group, or gave up there: the others may be past it."""
        return self.left is None and self.inside is not None and self.inside.op == "init_process_group"

    @property
    def in_backward(self) -> bool:
        """Tell whether it is in the backward pass, in which DDP reduces the gradients."""
        return self.is_in("backward")

    def is_in(self, phase: str) -> bool:
        """Tell whether it is in a phase, and in no call."""
        return self.inside is None and self.left is None and self.phase is not None and self.phase.name == phase

    def count(self, group: str) -> int:
        """Return the number of the last collective that it began in a group."""
        calls = self.ledger.groups.get(group)
        return calls.count if calls is not None else 0

    def calls(self, group: str) -> Optional[GroupCalls]:
        """Return its collectives in a group."""
        return self.ledger.groups.get(group)

    def times(self, phase: str) -> int:
        """Return how often it has entered a phase."""
        return next((each.times for each in self.ledger.phases if each.name == phase), 0)

    def wall(self, mono_ns: int) -> float:
        """Return a time of its ledger on the run's common clock."""
        return self.ledger.when(mono_ns) + self.offset

    def moved(self) -> float:
        """Return when its ledger has changed last, on the run's common clock."""
        return self.ledger.moved + self.offset

    def since(self) -> float:
        """Return since when it has stood where it stands."""
        if self.inside is not None:
            return self.wall(self.inside.waited_ns or self.inside.entered_ns)
        if self.left is not None:
            return self.left.when
        return self.wall(self.phase.entered_ns) if self.phase is not None else self.moved()

    def lasted(self) -> float:
        """Return for how many seconds it has stood there, as far as that is known."""
        if self.inside is not None and not self.inside.is_open:
            return (self.inside.left_ns - self.inside.entered_ns) * 1e-9
        if self.inside is None and self.left is None and self.phase is not None and not self.phase.is_open:
            return (self.phase.left_ns - self.phase.entered_ns) * 1e-9
        return max(0.0, self.until - self.since())


def inside(ledger: RankLedger, gave_up: bool) -> Optional[Record]:
    """Return the call that a rank is in: a call that has not returned, or whose work it waits for; or the last, if that raised and ended it."""
    entered = [record for record in ledger.open if record.blocks]
    records = [record for record in entered if not record.in_side_thread] or entered
    if records:
        return max(records, key=lambda record: record.waited_ns or record.entered_ns)
    return ledger.last if gave_up and ledger.last is not None and ledger.last.state == "raised" else None


def open_phase(ledger: RankLedger) -> Optional[Phase]:
    """Return the innermost phase that it is in."""
    phases = [phase for phase in ledger.phases if phase.is_open and phase.name not in _AROUND and not phase.in_side_thread]
    return max(phases, key=lambda phase: phase.entered_ns) if phases else None


_Standing_co = TypeVar("_Standing_co", bound=LedgerStanding, covariant=True)


class StandingsOf(Generic[_Standing_co]):
    """The standings of all ranks with a ledger, the groups, and the ranks without a ledger: of a run that was read, or of a job that runs."""

    def __init__(
        self, ranks: Dict[int, _Standing_co], groups: Dict[str, Tuple[Group, Set[int]]], unknown: Set[int], patience: float = PATIENCE
    ) -> None:
        self.ranks = ranks
        self.groups = groups
        """Each group with its ranks."""
        self.unknown = unknown
        """The ranks without a ledger, or with one that lacks something."""
        self.patience = patience
        """After how many seconds a wait is a hang."""

    def now(self) -> "StandingsOf[_Standing_co]":
        """Return the same of a job that runs: a wait that is seen to go on needs less patience."""
        return StandingsOf(self.ranks, self.groups, self.unknown)


LedgerStandings = StandingsOf[LedgerStanding]


def groups_of(standings: Iterable[LedgerStanding]) -> Dict[str, Tuple[Group, Set[int]]]:
    """Return the groups of these ranks, each with its ranks as far as they are known."""
    groups: Dict[str, Tuple[Group, Set[int]]] = {}
    for standing in standings:
        for name, calls in standing.ledger.groups.items():
            groups.setdefault(name, (calls.group, set()))[1].add(standing.rank)
    for group, members in groups.values():
        members.update(_members(group))
    return groups


def members_of(groups: Dict[str, Tuple[Group, Set[int]]]) -> Set[int]:
    """Return the ranks of these groups, also those that left no file."""
    return {rank for _, members in groups.values() for rank in members}


def _members(group: Group) -> Set[int]:
    """Return the ranks of a group; a list that was cut is not believed."""
    try:
        members = set(ranks_of(group.ranks)) if len(group.ranks) < 1000 and group.size <= 1 << 17 else set()  # the writer cuts there
    except ValueError:
        return set()
    return members if len(members) == group.size else set()
