"""Ranks whose equal calls meet from different lines: one is a call ahead, or makes two calls in another order. Nothing fails, and numbers are mixed.

Backends pair calls by their order. Two lines that meet are often right: the arms of an `if`, a root and the others, ranks that stand in for those
that have ended. They are wrong if both lines are on the way of one rank: then the call that belongs there met another one.
"""

import itertools
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading.rank_ledger import LedgerCall
from ddp_probe.reading.whole_ledger import Group, LedgerSite
from ddp_probe.standing.arms import Arms, Decision
from ddp_probe.standing.deciding import Deciding, deciding
from ddp_probe.standing.rank_standing import LedgerStanding, LedgerStandings
from ddp_probe.standing.source_trees import SourceTrees

_MOST_AHEAD = 16  # Calls by which a rank may be ahead.
_LONGEST_TURN = 32  # Calls whose order may differ.
_MOST_CLASSES = 64  # Different sequences that are compared in a group.
_ALIKE = 3  # At most this many calls are compared after a shift.
_ALIKE_WITHOUT_SOURCE = 8
ADDS_UP = frozenset("all_reduce all_reduce_coalesced reduce broadcast reduce_scatter _reduce_scatter_base reduce_scatter_tensor".split())
"""What makes wrong numbers of tensors that do not belong together. The others keep what each rank gives apart."""

_Label = Tuple[str, Tuple[LedgerSite, ...]]  # The operation, and the way to it through the job; its line, if the way is not known.


class Mixed(NamedTuple):
    """The first number of a group at which calls of lines that do not belong together met."""

    group: Group
    number: int
    calls: Tuple[Tuple[LedgerCall, Tuple[int, ...]], ...]  # With the ranks that made them there, the most first.
    blame: Tuple[int, ...]
    ahead: int  # How many calls the ranks of `extra` are ahead from there on; 0 if the order alone differs.
    extra: Optional[LedgerSite]  # The line whose call the others do not make there.
    mixed: int  # How many numbers have met from different lines, as far as the ledgers go back.
    decision: Optional[Decision]  # The `if` that holds the call of `extra`.
    is_sure: bool  # Not if the job's source, which would tell, is not here.
    deciding: Optional[Deciding] = None  # The statement at which the ways to both calls part, or the loop whose items differ.
    orders: Tuple[
        Tuple[int, ...], ...
    ] = ()  # If both make the same calls in a loop: its items in the order of each side, as the first side counts them.
    has_other_names: bool = False  # Both call one function in two arms, with texts of their own.
    chooses_compared: bool = False  # Both call one function in two arms, each with a compared value.
    numbers: Tuple[int, ...] = ()  # If each goes over numbers of its own in a loop: those at which both were.

    @property
    def rank(self) -> Tuple[bool, int]:
        """Return what orders the places: those that are sure come first."""
        return not self.is_sure, self.number


def first_mixed(standings: LedgerStandings) -> Optional[Mixed]:
    """Return the first such number of all groups; None if equal calls met wherever ranks met."""
    first: Optional[Mixed] = None
    for name, (group, members) in standings.groups.items():
        usual, *others = _classes(standings, name, sorted(members)) or [[]]
        for other in others[:_MOST_CLASSES]:
            parting = _Pair(standings, name, usual, other).parting()
            if parting is not None and (first is None or parting.rank < first.rank):
                first = parting.of(group)
    return first


def _classes(standings: LedgerStandings, name: str, members: Sequence[int]) -> List[List[int]]:
    """Return the ranks that made the same calls in a group, the most first."""
    alike: Dict[Tuple[int, bytes], List[int]] = {}
    for rank in members:
        calls = standings.ranks[rank].calls(name) if rank in standings.ranks else None
        if calls is not None and calls.numbers:
            alike.setdefault((calls.first, calls.numbers.tobytes()), []).append(rank)
    return sorted(alike.values(), key=lambda ranks: (-len(ranks), ranks))


class _Pair:
    """The calls of two classes of ranks in one group, side by side from the first number that both ledgers hold."""

    def __init__(self, standings: LedgerStandings, name: str, usual: List[int], other: List[int]) -> None:
        self.ranks = usual, other
        self._standings = [standings.ranks[ranks[0]] for ranks in self.ranks]
        self._name = name
        kept = [standing.calls(name) for standing in self._standings]
        self.first = max(calls.first for calls in kept if calls is not None)
        self.labels = [self._labels(standing) for standing in self._standings]
        self.met = min(len(labels) for labels in self.labels)
        self._when = min(standing.moved() for standing in self._standings)
        self.arms = Arms(self._when)

    def _labels(self, standing: LedgerStanding) -> List[_Label]:
        calls = standing.calls(self._name)
        if calls is None:
            return []
        labels: List[_Label] = []
        for number in range(self.first, calls.count + 1):
            call = calls.call(number)
            labels.append((call.op, _way(call)) if call is not None else ("", ()))
        return labels

    def call(self, side: int, at: int) -> LedgerCall:
        """Return a call of one side."""
        calls = self._standings[side].calls(self._name)
        call = calls.call(self.first + at) if calls is not None else None
        return call or LedgerCall("", 0, 0, "", -1, None)

    def placed(self, side: int, at: int) -> LedgerCall:
        """Return a call of one side with the line at which its way leaves that of the other side: two lines may call one function that makes it."""
        return self.call(side, at)._replace(site=self.lines(at)[side])

    def lines(self, at: int) -> Tuple[Optional[LedgerSite], Optional[LedgerSite]]:
        """Return the lines of one function at which the ways to both calls part; if there are none, the lines that make the calls."""
        one, other = (labels[at][1] for labels in self.labels)
        for first, second in zip(one, other):
            if first != second and (first.file, first.function) == (second.file, second.function):
                return first, second
            if first != second:
                break
        return one[-1] if one else None, other[-1] if other else None

    def deciding(self, at: int) -> Optional[Deciding]:
        """Return what decided between the last call that both sides made alike and those at this place."""
        one, other = (labels[at][1] for labels in self.labels)
        before = [labels[at - 1][1] if at else () for labels in self.labels]
        shared = before[0] if before[0] == before[1] and before[0] else None
        return deciding(SourceTrees(self._when), one, other, shared) if one and other else None

    def parting(self) -> "Optional[_Parting]":
        """Return the first place at which lines met that do not belong together."""
        for at in range(self.met):
            one, other = self.labels[0][at], self.labels[1][at]
            if one == other:
                continue
            if one[0] != other[0]:
                return None  # Other operations at one number are another question.
            if not all(_has_returned(standing, self._name, self.first + at) for standing in self._standings):
                return None  # They did not meet: one of them waited for the other in vain.
            if not self._belong(at):
                return self._parting(at)
        return None

    def _belong(self, at: int) -> bool:
        """Tell whether the two calls at a place are what each of the ranks makes there."""
        sites = self.lines(at)
        root = self.call(0, at).root
        if sites[0] is None or sites[1] is None or (root >= 0 and any(root in ranks for ranks in self.ranks)):
            return True
        if any(self.arms.stand_in(site) for site in sites if site is not None):
            return True
        if not self.arms.know(self.labels[0][at][0], sites[0], sites[1]):
            return not self._crosses(at)
        if self.arms.are_arms(sites[0], sites[1]):
            return not (self._swapped(at) or self.has_other_names(at) or self.chooses_compared(at))
        return not (self._passing(at) or self._ahead(at, is_known=True) or self._turned(at))

    def _crosses(self, at: int) -> bool:
        """Tell whether one side makes the other side's call nearby, so that the two are not each side's own part."""
        around = [labels[max(0, at - _MOST_AHEAD) : at + _MOST_AHEAD] for labels in self.labels]
        return self.labels[0][at] in around[1] or self.labels[1][at] in around[0]

    def _passing(self, at: int) -> Optional[Tuple[int, Decision]]:
        """Return the side whose call stands in an `if` before the call of the other side, which all make."""
        sites = self.lines(at)
        for side in (0, 1):
            made, usual = sites[side], sites[1 - side]
            decision = self.arms.passed_by(made, usual) if made is not None and usual is not None else None
            if decision is not None:
                return side, decision
        return None

    def _ahead(self, at: int, is_known: bool) -> Optional[Tuple[int, int]]:
        """Return the side that has made more calls, and how many: after them both go on alike."""
        for calls in range(1, _MOST_AHEAD + 1):
            for side in (0, 1):
                if self._goes_on(side, at + calls, at, is_known):
                    return side, calls
        return None

    def _goes_on(self, side: int, at: int, other_at: int, is_known: bool) -> bool:
        """Tell whether one side does from a place on what the other does from another place on."""
        mine, others = self.labels[side][at:], self.labels[1 - side][other_at:]
        wanted = _ALIKE if is_known else _ALIKE_WITHOUT_SOURCE
        compared = min(len(mine), len(others), wanted)
        if not compared or mine[:compared] != others[:compared]:
            return False
        return is_known or (compared == wanted and len(set(mine[:compared])) >= _ALIKE)

    def _turned(self, at: int) -> int:
        """Return how many calls both sides make in another order before they go on alike; 0 if that is not so."""
        for size in range(2, _LONGEST_TURN + 1):
            turns = [labels[at : at + size] for labels in self.labels]
            after = [labels[at + size : at + size + _ALIKE] for labels in self.labels]
            compared = min(len(after[0]), len(after[1]))
            if len(turns[0]) < size or len(turns[1]) < size:
                return 0
            if sorted(turns[0], key=str) == sorted(turns[1], key=str) and after[0][:compared] == after[1][:compared]:
                return size
            lines = [[(op, way[-1:]) for op, way in turn] for turn in turns]  # The calls of two functions by turns, from the same lines.
            if lines[0][0] != lines[1][0] and sorted(lines[0], key=str) == sorted(lines[1], key=str):
                return size
        return 0

    def _swapped(self, at: int) -> bool:
        """Tell whether the two arms of an `if` make the same calls in another order."""
        texts: Tuple[List[str], List[str]] = ([], [])
        for place in range(at, min(at + _LONGEST_TURN, self.met)):
            for side, line in enumerate(self.lines(place)):
                texts[side].append(self.arms.statement(line) if line is not None else "")
            if not all(text[-1] for text in texts) or texts[0][0] == texts[1][0]:
                return False
            if sorted(texts[0]) == sorted(texts[1]):
                return True
        return False

    def has_other_names(self, at: int) -> bool:
        """Tell whether both arms call one function, and each gives it a text of its own."""
        called = self._called_by_both(at)
        return called is not None and self.arms.have_other_texts(*called)

    def chooses_compared(self, at: int) -> bool:
        """Tell whether both arms call one function, each with a value that their condition compares."""
        called = self._called_by_both(at)
        return called is not None and self.arms.choose_compared(*called)

    def _called_by_both(self, at: int) -> Optional[Tuple[LedgerSite, LedgerSite, str]]:
        """Return the lines at which both ways part, and the function that both call to add something up."""
        (op, one), (_, other) = self.labels[0][at], self.labels[1][at]
        depth = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))
        inside = [way[depth + 1 : depth + 2] for way in (one, other)]
        if op not in ADDS_UP or not all(inside) or inside[0][0].function != inside[1][0].function:
            return None
        return one[depth], other[depth], inside[0][0].function.rpartition(".")[2]

    def _parting(self, at: int) -> "_Parting":
        op, (one, other) = self.labels[0][at][0], self.lines(at)
        is_known = one is not None and other is not None and self.arms.know(op, one, other)
        mixed = sum(one != other for one, other in zip(self.labels[0][at : self.met], self.labels[1][at : self.met]))
        if is_known and (self._swapped(at) or self.has_other_names(at)):
            return _Parting(self, at, -1, 0, None, mixed, True)
        if is_known and self.chooses_compared(at):
            return _Parting(self, at, -1, 0, None, mixed, False)
        ahead = self._ahead(at, is_known)
        passing = self._passing(at) if is_known else None
        if passing is not None:
            side, decision = passing
            return _Parting(self, at, side, ahead[1] if ahead is not None and ahead[0] == side else 1, decision, mixed, True)
        if ahead is not None and not (is_known and self._turned(at)):
            return _Parting(self, at, ahead[0], ahead[1], None, mixed, True)
        return _Parting(self, at, -1, 0, None, mixed, is_known)


def _way(call: LedgerCall) -> Tuple[LedgerSite, ...]:
    return call.way or ((call.site,) if call.site is not None else ())


def _has_returned(standing: LedgerStanding, name: str, number: int) -> bool:
    """Tell whether a call came to its end: it has met those of the others."""
    for record in (*standing.ledger.raised, *standing.ledger.open):
        if record.group is not None and record.group.id == name and record.seq == number:
            return False
    return True


class _Parting(NamedTuple):
    pair: _Pair
    at: int
    side: int  # The side with the call that the other does not make; -1 if the order differs.
    ahead: int
    decision: Optional[Decision]
    mixed: int
    is_sure: bool

    @property
    def rank(self) -> Tuple[bool, int]:
        return not self.is_sure, self.pair.first + self.at

    def of(self, group: Group) -> Mixed:
        """Return it with the ranks of both sides, and who is to blame."""
        pair = self.pair
        calls = tuple((pair.placed(side, self.at), tuple(pair.ranks[side])) for side in (0, 1))
        extra = calls[self.side][0].site if self.side >= 0 else None
        number, blame = pair.first + self.at, self._blame(group)
        mixed = Mixed(group, number, calls, blame, self.ahead, extra, self.mixed, self.decision, self.is_sure)
        mixed = mixed._replace(deciding=pair.deciding(self.at), has_other_names=pair.has_other_names(self.at))
        return mixed._replace(chooses_compared=pair.chooses_compared(self.at))

    def _blame(self, group: Group) -> Tuple[int, ...]:
        """Blame the few; of two sides alike in size the one whose call only it makes, unless the other has made it before and skips it now."""
        usual, other = self.pair.ranks
        if len(usual) * 2 > group.size:
            return tuple(other)
        if self.side < 0:
            known = [self.pair.labels[side][self.at] in self.pair.labels[side][: self.at] for side in (0, 1)]
            return tuple(self.pair.ranks[known.index(False)]) if known[0] != known[1] else tuple(sorted((*usual, *other)))
        label = self.pair.labels[self.side][self.at]
        before = self.pair.labels[1 - self.side][: self.at]
        skips = label in before and not (self.decision is not None and self.decision.on_rank)
        return tuple(self.pair.ranks[1 - self.side if skips else self.side])
