"""The models of ranks side by side: which parameters the usual model and another one do not have in common."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging import _models
from ddp_probe.judging._wraps import Wrapped, wrapping_ranks
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run

_OTHERS = 3  # At most this many other models are compared with the usual one.


class ParameterPair(NamedTuple):
    """A parameter in both models, as text; empty on the side that does not have it."""

    name: str
    here: str
    there: str


class ModelPair(NamedTuple):
    """The model that most ranks wrap, and another one."""

    ranks_here: List[int]
    ranks_there: List[int]
    at_here: LogLine
    at_there: LogLine
    parameters_here: int
    parameters_there: int
    rows: List[ParameterPair]  # Those that differ.
    same: int  # How many do not.
    whole: bool  # False if only the first parameters of each model are known.


def pairs(run: Run) -> List[ModelPair]:
    """Return each other model beside the most frequent one; empty if all ranks wrap the same."""
    groups = list(_models.by_digest(_models.first_wraps(run)).values())
    return [_pair(run, groups[0], other) for other in groups[1 : _OTHERS + 1]]


def _pair(run: Run, usual: List[Wrapped], other: List[Wrapped]) -> ModelPair:
    lists = [_models.parameters(run, each[0]) for each in (usual, other)]
    whole = all(found is not None for found in lists)
    here, there = (_models.listed(run, each[0]) for each in (usual, other))
    rows = _differing(here, there, whole=whole)
    counts = [each[0].placement.parameters for each in (usual, other)]
    same = len(here) - sum(bool(row.here) for row in rows)
    return ModelPair(wrapping_ranks(usual), wrapping_ranks(other), usual[0].call.at, other[0].call.at, counts[0], counts[1], rows, same, whole)


def _differing(here: Sequence[_models.Parameter], there: Sequence[_models.Parameter], *, whole: bool) -> List[ParameterPair]:
    """Return the parameters that differ; if none does, those whose places differ. A name beyond what is known of a model is not missing."""
    mine, theirs = ({one[0]: one for one in each} for each in (here, there))
    names = list(dict.fromkeys([*mine, *theirs]))
    if not whole:
        names = [name for name in names if name in mine and name in theirs]
    rows = [_row(name, mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)]
    return rows or _moved(here, there)


def _row(name: str, here: Optional[_models.Parameter], there: Optional[_models.Parameter]) -> ParameterPair:
    return ParameterPair(name, _text(here), _text(there))


def _text(one: Optional[_models.Parameter]) -> str:
    if one is None:
        return ""
    return "%s %s%s" % (list(one[1]), one[2], "" if one[3] else ", frozen")


def _moved(here: Sequence[_models.Parameter], there: Sequence[_models.Parameter]) -> List[ParameterPair]:
    places: Dict[str, Tuple[int, int]] = {one[0]: (number, -1) for number, one in enumerate(here)}
    for number, one in enumerate(there):
        places[one[0]] = (places.get(one[0], (-1, -1))[0], number)
    rows = [(name, *pair) for name, pair in places.items() if pair[0] != pair[1] and -1 not in pair]
    return [ParameterPair(name, "number %d" % mine, "number %d" % theirs) for name, mine, theirs in rows]
