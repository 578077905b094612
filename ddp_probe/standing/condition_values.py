"""The plain values that ranks had of the names in one condition, side by side.

A frame holds the values of where it stands, and not of where it decided: names that have been assigned since are told as such.
"""

import ast
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared.schema import FrameValues, Site
from ddp_probe.standing.conditions import dotted
from ddp_probe.standing.deciding import Statement
from ddp_probe.standing.rank_standing import LedgerStandings
from ddp_probe.standing.sequence import SequenceParting
from ddp_probe.standing.source_trees import SourceTrees, own_nodes
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted

_SHOWN = 4
Values = Dict[int, Dict[str, str]]
"""By rank: the values of names."""


def compared(standings: LedgerStandings, left: SequenceParting, statement: Statement, frames: Mapping[int, Sequence[FrameValues]]) -> str:
    """Return a clause with the values of the names in a condition that took ranks apart; empty if none was kept, or if all are alike.

    `frames` are the values in the frames in which each rank is, or which an exception has left, the outermost first.
    """
    values = differing({rank: values_at(frames[rank], statement) for rank in frames})
    if not values:
        return ""
    text = side_by_side(values)
    source = SourceTrees(min(standings.ranks[rank].moved() for rank in values))
    names = {name for told in values.values() for name in told}
    if any(_has_gone_on(standings, left, rank) for rank in values) or names & _assigned_since(statement, source):
        return say("where they are now: {values}", values=text)
    return text


def values_at(frames: Sequence[FrameValues], statement: Statement) -> Dict[str, str]:
    """Return the values of the condition's names in the innermost frame of its function, which may stand at a later line of it."""
    for frame in reversed(frames):
        if frame.site is not None and _is_function(statement, frame.site.file, frame.site.function):
            return {name: frame.values[name] for name in statement.names if name in frame.values}
    return {}


def _is_function(statement: Statement, file: str, function: str) -> bool:
    """Compare file and function; before Python 3.11 a function has its plain name alone."""
    own, other = statement.function.rpartition(".")[2], function.rpartition(".")[2]
    return statement.file == file and (own or "<module>") == other


def _has_gone_on(standings: LedgerStandings, left: SequenceParting, rank: int) -> bool:
    """Tell whether a rank has made more calls or passes than the one to which the condition led it."""
    makers = left.ranks if left.is_sure or not left.sides else left.sides[0]
    entry = left.made if rank in makers else left.usual
    return entry is not None and any(record.number > entry.record for record in standings.ranks[rank].sequence())


def _assigned_since(statement: Statement, source: SourceTrees) -> Set[str]:
    """Return the names that the function assigns behind the condition, as far as its source is here."""
    function = source.function(LedgerSite(statement.file, statement.line, statement.function))
    body = getattr(function, "body", [])
    nodes = own_nodes(iter(body)) if isinstance(body, list) else iter(())
    later = [node for node in nodes if getattr(node, "lineno", 0) > statement.line]
    stored = [node for node in later if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))]
    return set(map(dotted, stored))


def differing(values: Values) -> Values:
    """Return the values of the ranks that have some, unless several have and all are alike; names that some of them lack are left out."""
    ranks = [rank for rank in sorted(values) if values[rank]]
    if not ranks:
        return {}
    first = values[ranks[0]]
    names = [name for name in first if all(name in values[rank] for rank in ranks)]
    shared = {rank: {name: values[rank][name] for name in names} for rank in ranks}
    is_alike = len(ranks) > 1 and all(shared[rank] == shared[ranks[0]] for rank in ranks)
    return shared if names and not is_alike else {}


def in_shared_function(frames: Mapping[int, Sequence[FrameValues]]) -> Tuple[Optional[Site], Values]:
    """Return the innermost function that all ranks are in, and the values there that are not alike; None if there are none."""
    stacks = {rank: {_function(frame): frame for frame in frames[rank]} for rank in frames}
    if len(stacks) < 2:
        return None, {}
    first = stacks[min(stacks)]
    for function in reversed(list(first)):
        if not all(function in stack for stack in stacks.values()):
            continue
        values = {rank: stack[function].values for rank, stack in stacks.items()}
        unlike = {name for name in first[function].values if len({told.get(name) for told in values.values()}) > 1}
        if unlike:
            return first[function].site, {rank: {name: told[name] for name in told if name in unlike} for rank, told in values.items()}
    return None, {}


def _function(frame: FrameValues) -> Tuple[str, str]:
    return (frame.site.file, frame.site.function) if frame.site is not None else ("", "")


def side_by_side(values: Values) -> Text:
    """Return a clause such as "rank 0: value 3.5, best 7.0; rank 1: value 8.0, best 7.0"; alike ranks share one."""
    return listed(clauses(values), by="; ")


def clauses(values: Values) -> List[Text]:
    """Return a clause for each kind of values, the first few."""
    ranks_of: Dict[str, List[int]] = {}
    for rank in sorted(values):
        ranks_of.setdefault(", ".join("%s %s" % item for item in values[rank].items()), []).append(rank)
    kinds = [say("{who}: {values}", who=_ranks(ranks), values=quoted(text)) for text, ranks in ranks_of.items()]
    more = len(kinds) - _SHOWN
    return [*kinds[:_SHOWN], say("and {more} more kinds", more=more)] if more > 0 else kinds


def _ranks(ranks: Sequence[int]) -> Text:
    if len(ranks) == 1:
        return say("rank {rank}", rank=ranks[0])
    if len(ranks) <= _SHOWN:
        return say("ranks {ranks} and {last}", ranks=listed(ranks[:-1]), last=ranks[-1])
    return say("{count} ranks, the first of them rank {rank}", count=len(ranks), rank=ranks[0])
