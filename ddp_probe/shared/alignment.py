"""Which rank leaves the sequence of calls that all make: the last calls of all ranks side by side, by the line of the job that makes them.

Ranks that play one part make one sequence, whatever their group is: those of a row, of a column, of the middle of a pipeline. A rank that waits has
made the beginning of it. A rank that lacks a call, makes it twice or makes two in another order leaves the sequence, whoever waits for whom. A rank
that is alone in its part is compared with what it did before. Standard library only: the traced half may ask as well.
"""

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

MOST_RANKS = 256
"""At most this many ranks are compared; of more, the caller chooses."""
_LONGEST = 128  # Calls that a repetition may have.
_TAIL = 512  # Calls of a rank, after the last one that all ranks have made together, that are compared.


class AlignedCall(NamedTuple):
    """A call that a rank has made; `members` are the ranks of its group, `peer` is -1 for a collective."""

    op: str
    file: str
    line: int
    group: str
    members: Tuple[int, ...]
    seq: int
    peer: int


Label = Tuple[object, ...]


class Departure(NamedTuple):
    """The one rank that left the sequence of calls: what it called, what it should have called, and the ranks that did, unless its past tells."""

    rank: int
    made: AlignedCall
    usual: AlignedCall
    others: Tuple[int, ...]


def departure(calls: Dict[int, Sequence[AlignedCall]]) -> Optional[Departure]:
    """Return the one rank whose calls depart from those of the others, or from its own before; None if there is none, or more than one."""
    if len(calls) < 2:
        return None
    aligned = _Aligned(calls)
    answers = [aligned.differs(part) for part in aligned.parts()]
    if all(answer is None for answer in answers):
        answers = [aligned.against_past(rank) for rank in calls]
    departures = [answer for answer in answers if answer is not None]
    return departures[0] if len(departures) == 1 and departures[0].rank >= 0 else None


class _Aligned:
    """The calls of all ranks, as labels that are equal for ranks of one part; `start` is where the calls after the last common one begin."""

    def __init__(self, calls: Dict[int, Sequence[AlignedCall]]) -> None:
        self.calls = calls
        self.labels = _labels(calls)
        self._breaks: Dict[int, Optional[Tuple[int, int]]] = {}
        self._common = _common(calls)
        met = self._common[-1] if self._common else {}
        known = {rank: frozenset(self.labels[rank][: met.get(rank, len(labels)) + 1]) for rank, labels in self.labels.items()}
        self._parts = _alike(known if met else _widened(known, _peers(calls)))
        agreed: Dict[int, int] = next((one for one in reversed(self._common) if self._agrees(one)), {})
        self._last = {rank: self._before(rank, place) for rank, place in agreed.items()}
        self.start = {rank: max(agreed.get(rank, -1) + 1, len(labels) - _TAIL if agreed else 0) for rank, labels in self.labels.items()}

    def _agrees(self, places: Dict[int, int]) -> bool:
        """Tell whether ranks of one part made this common call at one line."""
        return all(len({self.labels[rank][places[rank]] for rank in part}) == 1 for part in self._parts)

    def _before(self, rank: int, place: int) -> int:
        """Return the start of the calls that a rank made after the common call before this one at the same line, or of all."""
        labels = self.labels[rank]
        found = (one[rank] + 1 for one in reversed(self._common) if one[rank] < place and labels[one[rank]] == labels[place])
        return next(found, 0)

    def parts(self) -> List[List[int]]:
        """Return the ranks that play one part, if there are several."""
        return [part for part in self._parts if len(part) > 1]

    def differs(self, part: Sequence[int]) -> Optional[Departure]:
        """Return the rank that departs from the others of its part first; its number is -1 if ranks differ and nothing tells which is wrong."""
        for at in range(max(len(self.labels[rank]) - self.start[rank] for rank in part)):
            sides: Dict[Label, List[int]] = {}
            for rank in part:
                place = self.start[rank] + at
                if place < len(self.labels[rank]):
                    sides.setdefault(self.labels[rank][place], []).append(rank)
            if len(sides) > 1:
                return self._judged(list(sides.values()), at)
        return None

    def _judged(self, sides: List[List[int]], at: int) -> Departure:
        usual, *others = sorted(sides, key=lambda ranks: -len(ranks))
        if len(usual) == 1 and len(others) == 1:
            wrong = self._unusual(usual[0], others[0][0], at)
            usual, others = (others[0], [usual]) if wrong == usual[0] else (usual, [[wrong]])
        guilty = others[0][0] if len(others) == 1 and len(others[0]) == 1 else -1
        if guilty >= 0 and self._call(guilty, at).peer >= 0 and self._is_first(guilty, at):
            guilty = -1  # Either it makes this half, or its peer does not make the other.
        return Departure(guilty, self._call(guilty if guilty >= 0 else usual[0], at), self._call(usual[0], at), tuple(usual))

    def _unusual(self, one: int, other: int, at: int) -> int:
        """Return which of two ranks does what neither has done elsewhere after the same calls, or else what fewer ranks do there; -1 if neither."""
        places = {rank: self.start[rank] + at for rank in (one, other)}
        wanted = [self.labels[rank][place] for rank, place in places.items()]
        for length in range(min(*places.values(), _LONGEST), 0, -1):
            contexts = [self.labels[rank][place - length : place] for rank, place in places.items()]
            if contexts[0] != contexts[1]:
                continue
            after: Set[Label] = set()
            for rank, place in places.items():
                after.update(_after(self.labels[rank], contexts[0], place))
            if (wanted[0] in after) != (wanted[1] in after):
                return other if wanted[0] in after else one
        with_one, with_other = self._many(one, at), self._many(other, at)
        if with_one == with_other:
            return -1
        return other if with_one > with_other else one

    def _is_first(self, rank: int, at: int) -> bool:
        """Tell whether nobody has made such a call elsewhere."""
        place, labels = self.start[rank] + at, self.labels[rank]
        label = labels[place]
        return not any(label in (known[:place] + known[place + 1 :] if one == rank else known) for one, known in self.labels.items())

    def _many(self, rank: int, at: int) -> int:
        """Return how many ranks make a collective of a rank at this place of their own."""
        mine = self._call(rank, at)
        places = [made[self.start[one] + at] for one, made in self.calls.items() if self.start[one] + at < len(made)]
        return 1 if mine.peer >= 0 else sum((one.group, one.seq, one.line) == (mine.group, mine.seq, mine.line) for one in places)

    def _call(self, rank: int, at: int) -> AlignedCall:
        return self.calls[rank][self.start[rank] + at]

    def against_past(self, rank: int) -> Optional[Departure]:
        """Return where a rank departs from what it did before; not if others of its part do the same."""
        found = self._broken(rank)
        if found is None or found[0] < self.start[rank]:
            return None
        at = found[0] - self.start[rank]
        part = next(part for part in self._parts if rank in part)
        also = [one for one in part if one != rank and self.start[one] + at < len(self.labels[one])]
        return None if also else Departure(rank, self.calls[rank][found[0]], self.calls[rank][found[0] - found[1]], ())

    def _broken(self, rank: int) -> Optional[Tuple[int, int]]:
        """Return where the calls of a rank cease to repeat, and how many calls repeated; None if they go on to the end, or never have."""
        if rank not in self._breaks:
            labels, start = self.labels[rank], self.start[rank]
            before = start - self._last.get(rank, start)  # The calls between the last two common ones of one line.
            found = _parting(labels, start, before) if before else None
            self._breaks[rank] = found if before else _break(labels, max(0, len(labels) - _TAIL))
        return self._breaks[rank]


def _after(labels: List[Label], context: List[Label], but: int) -> Set[Label]:
    """Return what comes after these calls, wherever else they are."""
    size = len(context)
    ends = (end for end in range(size, len(labels)) if end != but and labels[end - 1] == context[-1])
    return {labels[end] for end in ends if labels[end - size : end] == context}


def _parting(labels: Sequence[Label], start: int, before: int) -> Optional[Tuple[int, int]]:
    """Return where the calls after a common one differ from those before it."""
    end = next((at for at in range(start, min(start + before, len(labels))) if labels[at] != labels[at - before]), None)
    return (end, before) if end is not None and labels[end] in labels[:end] else None


def _break(labels: Sequence[Label], first: int) -> Optional[Tuple[int, int]]:
    """Return the end of the longest repetition and the length of what is repeated; None if that is the end of all, or if a new call follows."""
    labels = labels[first:]
    longest, period = (0, 0), 0
    for distance in range(1, min(_LONGEST, len(labels) - 1) + 1):
        run = _longest_run([one == other for one, other in zip(labels[distance:], labels)])
        if run[0] > longest[0]:
            longest, period = run, distance
    end = longest[1] + period
    whole = longest[0] >= period or longest[0] == longest[1]  # It was there twice, or all that was there is in it.
    return (first + end, period) if longest[0] and whole and end < len(labels) and labels[end] in labels[:end] else None


def _longest_run(same: Sequence[bool]) -> Tuple[int, int]:
    """Return the length and the end of the longest run."""
    longest, began = (0, 0), 0
    for place, one in enumerate([*same, False]):
        if not one:
            longest = max(longest, (place - began, place), key=lambda run: run[0])
            began = place + 1
    return longest


def _labels(calls: Dict[int, Sequence[AlignedCall]]) -> Dict[int, List[Label]]:
    """Return what each call is for its rank: its line, and which of its groups or peers, if it has several at that line."""
    several: Set[Tuple[str, str, int]] = set()
    for rank, made in calls.items():
        own: Dict[Tuple[str, str, int], Tuple[int, ...]] = {}
        for call in made:
            if own.setdefault(call[:3], _kind(rank, call)) != _kind(rank, call):
                several.add(call[:3])
    return {rank: [(*call[:3], _kind(rank, call)) if call[:3] in several else call[:3] for call in made] for rank, made in calls.items()}


def _kind(rank: int, call: AlignedCall) -> Tuple[int, ...]:
    """Return what sister groups have in common, the distances of their ranks; of a pair, how far the peer is."""
    if call.peer >= 0:
        return (call.peer - rank,)
    return tuple(member - call.members[0] for member in call.members[1:])


def _common(calls: Dict[int, Sequence[AlignedCall]]) -> List[Dict[int, int]]:
    """Return the calls that all ranks have made together, in order: for each rank, the place among its own."""
    places: Dict[Tuple[str, int], Dict[int, int]] = {}
    for rank, made in calls.items():
        for place, call in enumerate(made):
            if call.peer < 0 and call.group:
                places.setdefault((call.group, call.seq), {})[rank] = place
    whole = [one for one in places.values() if len(one) == len(calls)]
    first = next(iter(calls))
    return sorted(whole, key=lambda one: one[first])


def _widened(known: Dict[int, FrozenSet[Label]], peers: Dict[int, Set[int]]) -> Dict[int, FrozenSet[Label]]:
    """Return for each rank what the ranks of its part call, which have peers in the same places: most are not through their first step."""
    return {
        rank: max((one for other, one in known.items() if labels <= one and peers[rank] == peers[other]), key=len) for rank, labels in known.items()
    }


def _peers(calls: Dict[int, Sequence[AlignedCall]]) -> Dict[int, Set[int]]:
    """Return how far away the peers of each rank are: those that it names, and those that name it."""
    size = max(calls) + 1
    distances: Dict[int, Set[int]] = {rank: set() for rank in calls}
    for rank, made in calls.items():
        for peer in {call.peer for call in made if call.peer >= 0}:
            distances[rank].add((peer - rank) % size)
            distances.setdefault(peer, set()).add((rank - peer) % size)
    return distances


def _alike(known: Dict[int, FrozenSet[Label]]) -> List[List[int]]:
    """Return the ranks that have made the same calls."""
    found: Dict[FrozenSet[Label], List[int]] = {}
    for rank, labels in known.items():
        found.setdefault(labels, []).append(rank)
    return list(found.values())
