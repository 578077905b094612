"""Ranks that go over the names of a loop in another order: they make the same calls at the same line.

What one name has meets what another has. Each call in such a loop has the checksum of the item that the loop was at.
Ranks may each have items of their own, such as files: only the same items in another order show it. If what
is added up is looked up by numbers that the ranks do not share, such as those of their worst classes, nothing
tells whether that is meant.
"""

from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading.rank_ledger import LedgerCall
from ddp_probe.reading.whole_ledger import Group, LedgerSite, Record
from ddp_probe.shared.ledger_schema import ITEM_IS_NAME, PAIRED
from ddp_probe.standing.deciding import Deciding
from ddp_probe.standing.loop_source import ItemLoop, item_loop
from ddp_probe.standing.out_of_step import ADDS_UP, Mixed, first_mixed
from ddp_probe.standing.rank_standing import LedgerStandings
from ddp_probe.standing.source_trees import SourceTrees

_MOST_RANKS = 16  # Their ledgers are read again.
_LONGEST_TURN = 256  # Items whose order is compared.

_Calls = Dict[Tuple[str, int], Record]  # By group and number.


class _Turn(NamedTuple):
    """The calls of a loop in which two ranks took the same items in another order, and the first that differs."""

    calls: Sequence[Tuple[Record, Record]]
    first: int
    mixed: int  # How many calls have met for different items, as far as the ledgers go back.
    are_own: bool = False  # They are numbers, and not the same ones.

    @property
    def orders(self) -> Tuple[Tuple[int, ...], ...]:
        """Return the items in the order of each rank, by the numbers that they have on the first one."""
        numbers: Dict[int, int] = {}
        for one, _ in self.calls:
            numbers.setdefault(one.item, len(numbers) + 1)
        return tuple(tuple(numbers[call[side].item] for call in self.calls) for side in (0, 1))


def first_mixed_calls(standings: LedgerStandings) -> Optional[Mixed]:
    """Return the first number at which calls met that do not belong together, by their lines or by the items of their loops."""
    found = [mixed for mixed in (first_mixed(standings), first_other_order(standings)) if mixed is not None]
    return min(found, key=lambda mixed: mixed.rank, default=None)


def first_other_order(standings: LedgerStandings) -> Optional[Mixed]:
    """Return the first call at which ranks were at different items of a loop that all go over."""
    ranks = [rank for rank in sorted(standings.ranks) if standings.ranks[rank].ledger.has_items]
    chosen = ranks[:: max(1, len(ranks) // _MOST_RANKS)][:_MOST_RANKS]
    if len(chosen) < 2:
        return None
    calls = {rank: _calls_in_loops(standings.ranks[rank].records()) for rank in chosen}
    alike: Dict[Tuple[Tuple[Tuple[str, int], int], ...], List[int]] = {}
    for rank in chosen:
        alike.setdefault(tuple((key, call.item) for key, call in calls[rank].items()), []).append(rank)
    usual, *others = sorted(alike.values(), key=lambda those: (-len(those), those))
    turns = [(turn, other) for other in others for turn in _turns(calls[usual[0]], calls[other[0]])]
    mixed = [_mixed(standings, turn, usual, other) for turn, other in turns]
    return min((each for each in mixed if each is not None), key=lambda each: each.rank, default=None)


def _calls_in_loops(records: Sequence[Record]) -> _Calls:
    """Return the collectives of a rank that have come to their end and have an item."""
    calls: _Calls = {}
    for record in records:
        is_plain = not (record.is_inner or record.in_side_thread or record.signal or record.op in PAIRED)
        if record.item and is_plain and record.group is not None and record.state == "returned":
            calls[(record.group.id, record.seq)] = record
    return calls


def _turns(one: _Calls, other: _Calls) -> Iterator[_Turn]:
    """Yield for each line the first turn in which the order differs."""
    of_lines: Dict[Tuple[str, str, Tuple[LedgerSite, ...]], List[Tuple[Record, Record]]] = {}
    for key in sorted(one.keys() & other.keys(), key=lambda key: key[1]):
        pair = one[key], other[key]
        labels = [(key[0], call.op, call.way or ((call.site or LedgerSite()),)) for call in pair]
        if labels[0] == labels[1]:
            of_lines.setdefault(labels[0], []).append(pair)
    for pairs in of_lines.values():
        turn = _turn(pairs)
        if turn is not None:
            yield turn


def _turn(pairs: Sequence[Tuple[Record, Record]]) -> Optional[_Turn]:
    first = next((place for place, (one, other) in enumerate(pairs) if one.item != other.item), None)
    if first is None:
        return None
    mixed = sum(one.item != other.item for one, other in pairs)
    size = _size_of_turn(pairs[first : first + _LONGEST_TURN])
    if not size and not any((one.item | other.item) & ITEM_IS_NAME for one, other in pairs[first:]):
        return _Turn(pairs[first : first + 1], 0, mixed, are_own=True)
    begin = first
    items = {one.item for one, _ in pairs[first : first + size]}
    while size and begin and pairs[begin - 1][0].item not in items:
        begin -= 1
        items.add(pairs[begin][0].item)
    end = first + size
    while size and end < len(pairs) and pairs[end][0].item not in items:
        if pairs[end][0].item != pairs[end][1].item:
            break
        items.add(pairs[end][0].item)
        end += 1
    turn = pairs[begin:end]
    are_names = all(call.item & ITEM_IS_NAME for pair in turn for call in pair)
    # Numbers may say where each rank begins: with its own part. Then no rank is at the same number as another.
    if not size or not (are_names or any(one.item == other.item for one, other in turn)):
        return None
    return _Turn(turn, first - begin, mixed)


def _size_of_turn(pairs: Sequence[Tuple[Record, Record]]) -> int:
    """Return after how many calls both ranks have taken the same items; 0 if they never have."""
    lacking: Dict[int, int] = Counter()
    for size, (one, other) in enumerate(pairs, 1):
        lacking[one.item] += 1
        lacking[other.item] -= 1
        if not any(lacking.values()):
            return size
    return 0


def _mixed(standings: LedgerStandings, turn: _Turn, usual: List[int], other: List[int]) -> Optional[Mixed]:
    """Return the place with the loop; None if each rank may have its own order there."""
    pair = turn.calls[turn.first]
    call = pair[0]
    group, way = call.group or Group(), call.way or ((call.site,) if call.site is not None else ())
    sources = SourceTrees(min(standings.ranks[rank].moved() for rank in (usual[0], other[0])))
    loop = item_loop(sources, way, call.op)
    if call.op not in ADDS_UP and not (loop is not None and loop.gives_tensor):
        return None
    if not (call.item & ITEM_IS_NAME or (loop is not None and loop.gives_tensor)):
        return None
    blame = tuple(other) if len(usual) * 2 > group.size else tuple(sorted((*usual, *other)))
    sides = tuple((_plain(made), tuple(ranks)) for made, ranks in zip(pair, (usual, other)))
    is_sure = loop is not None and loop.gives_tensor and not turn.are_own
    mixed = Mixed(group, call.seq, sides, blame, 0, None, turn.mixed, None, is_sure, _deciding(loop, call))
    if turn.are_own:
        return mixed._replace(numbers=tuple(made.item - 1 for made in pair)) if call.op in ADDS_UP else None
    return mixed._replace(orders=turn.orders)


def _plain(call: Record) -> LedgerCall:
    return LedgerCall(call.op, call.elements, call.tensors, call.dtype, call.peer, call.site, call.way)


def _deciding(loop: Optional[ItemLoop], call: Record) -> Optional[Deciding]:
    if loop is None:
        return None
    statement = loop.statement
    line = call.site.line if call.site is not None else 0
    return Deciding(statement.function, statement.file, (statement,), True, line, line)
