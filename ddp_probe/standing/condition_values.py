"""The plain values that ranks had of the names in one condition, side by side."""

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared import schema

_SHOWN = 4


def values_at(process: LoggedProcess, site: Optional[schema.Site], names: Iterable[str]) -> Dict[str, str]:
    """Return the values of these names where the process stood last, or left; `site` is a line of the function that holds the condition.

    The frame need not stand at this line: it has gone on from the condition to the call in which it waits.
    """
    for frame in reversed(_frames_of(process)):
        if frame.site is not None and (site is None or _is_same_function(frame.site, site)):
            values = {name: frame.values[name] for name in names if name in frame.values}
            if values:
                return values
    return {}


def _is_same_function(frame: schema.Site, site: schema.Site) -> bool:
    """Compare file and function; before Python 3.11 a function has its plain name alone."""
    if frame.file != site.file:
        return False
    return not site.function or frame.function.rpartition(".")[2] == site.function.rpartition(".")[2]


def _frames_of(process: LoggedProcess) -> Sequence[schema.FrameValues]:
    """Return the frames of the process's end, if an exception ended it, else of its last suspected hang that is not over."""
    ended = process.ended
    if ended is not None and ended.failure is not None and ended.failure.values:
        return ended.failure.values
    suspected, over = process.final(schema.HangSuspected), process.final(schema.HangOver)
    if suspected is None or (over is not None and over.when > suspected.when):
        return ()
    return suspected.begin.values


def differing(values: Mapping[int, Mapping[str, str]]) -> Dict[int, Dict[str, str]]:
    """Return the values by rank if a name of the condition differs between ranks; names that are alike stay, since they decide with it.

    A name that some rank lacks is left out. Empty if no name differs.
    """
    ranks = [rank for rank in sorted(values) if values[rank]]
    if len(ranks) < 2:
        return {}
    names = [name for name in values[ranks[0]] if all(name in values[rank] for rank in ranks)]
    if all(values[rank][name] == values[ranks[0]][name] for rank in ranks for name in names):
        return {}
    return {rank: {name: values[rank][name] for name in names} for rank in ranks}


def side_by_side(values: Mapping[int, Mapping[str, str]]) -> str:
    """Return a clause such as "value 3.5, best 7.0 on rank 0; value 8.0, best 7.0 on rank 1"; of many ranks the first of each kind."""
    kinds: List[Tuple[str, List[int]]] = []
    for rank in sorted(values):
        text = ", ".join("%s %s" % item for item in values[rank].items())
        same = next((ranks for known, ranks in kinds if known == text), None)
        if same is None:
            kinds.append((text, [rank]))
        else:
            same.append(rank)
    clauses = ["%s on %s" % (text, _ranks(ranks)) for text, ranks in kinds[:_SHOWN]]
    return "; ".join(clauses)


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return "rank %d" % ranks[0]
    if len(ranks) <= _SHOWN:
        return "ranks %s and %d" % (", ".join(map(str, ranks[:-1])), ranks[-1])
    return "%d ranks, the first of them rank %d" % (len(ranks), ranks[0])
