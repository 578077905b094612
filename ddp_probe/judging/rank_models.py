"""Compares the models that ranks wrap: which ranks differ from the majority, and in which parameter."""

import os
from collections import Counter
from itertools import chain
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import msgspec

from ddp_probe.judging.facts import fact
from ddp_probe.judging.wrap_calls import Wrapped, wrapping_ranks
from ddp_probe.reading import fold_file
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

_BYTES = 1 << 26  # A list longer than this is not read.
_WRAPPERS = ("DistributedDataParallel", "MMDistributedDataParallel")

Parameter = Tuple[str, Tuple[int, ...], str, bool]  # name, shape, dtype, trainable
_LIST = msgspec.json.Decoder(List[Tuple[str, Tuple[int, ...], str, bool, str]])


@fact
def first_wraps(run: Run) -> List[Wrapped]:
    """Return each rank's first wrap in the default group, by rank: another group may hold another model."""
    wraps: List[Wrapped] = []
    for process in run.processes:
        call = next((call for call in process.calls(schema.Wrap) if _replicates(call.begin)), None)
        placement = call.begin.placement if call is not None else None
        if call is not None and placement is not None and placement.digest and not placement.truncated:
            wraps.append(Wrapped(process, call))
    return wraps


def _replicates(wrap: schema.Wrap) -> bool:
    return wrap.wrapper.rpartition(".")[2] in _WRAPPERS and wrap.group in ("", "default")


def by_digest(wraps: List[Wrapped]) -> Dict[str, List[Wrapped]]:
    """Return the wraps by what the model's parameters are, the most frequent first."""
    groups: Dict[str, List[Wrapped]] = {}
    for wrapped in wraps:
        groups.setdefault(wrapped.placement.digest, []).append(wrapped)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[1][0].process.rank or 0)))


def minority(groups: Dict[str, List[Wrapped]]) -> List[Wrapped]:
    """Return the wraps outside the majority; none if there is no majority."""
    sizes = [len(group) for group in groups.values()]
    if len(sizes) < 2 or sizes[0] * 2 <= sum(sizes):
        return []
    return list(chain.from_iterable(list(groups.values())[1:]))


def parameters(run: Run, wrapped: Wrapped) -> Optional[List[Parameter]]:
    """Return the model's list of parameters, if the run's folder has it and it matches its digest."""
    digest = wrapped.placement.digest
    if not digest.isalnum():  # It becomes a file's name.
        return None
    for folder in dict.fromkeys((os.path.dirname(wrapped.process.file), *run.folders)):
        rows = _read(fold_file.real_place(os.path.join(folder, "models", digest + ".json")))
        if rows is not None and len(rows) == wrapped.placement.parameters:
            return rows
    return None


def _read(path: str) -> Optional[List[Parameter]]:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _BYTES:
            return None
        with open_bytes(path) as stream:
            rows = _LIST.decode(stream.read(_BYTES))
    except (OSError, *UNREADABLE):
        return None
    return [(name, shape, dtype, trainable) for name, shape, dtype, trainable, _ in rows]


def reordered(run: Run, wrapped: Wrapped, other: Wrapped) -> Optional[bool]:
    """Tell whether both have the same parameters in another order; None if the lists are not available."""
    mine, theirs = parameters(run, wrapped), parameters(run, other)
    if mine is None or theirs is None:
        return None
    return mine != theirs and Counter(mine) == Counter(theirs)


def alike(wrapped: Wrapped, other: Wrapped) -> bool:
    """Tell whether the counts of both are the same, as they are if only the order differs."""
    mine, theirs = wrapped.placement, other.placement
    return (mine.parameters, mine.elements, mine.trainable, mine.dtypes) == (theirs.parameters, theirs.elements, theirs.trainable, theirs.dtypes)


def buffers(wrapped: Wrapped) -> Tuple[int, int]:
    """Return how many buffers there are, and how many elements in them."""
    return wrapped.placement.buffers, sum(tally.elements for tally in wrapped.placement.buffer_devices.values())


def difference(run: Run, wrapped: Wrapped, other: Wrapped) -> str:
    """Say which parameter is the first that differs; empty if the lists are not available."""
    mine, theirs = listed(run, wrapped), listed(run, other)
    here, there = wrapped.process.rank, other.process.rank
    for index, (left, right) in enumerate(zip(mine, theirs)):
        if left != right:
            return say(
                "parameter {number} is {here} on rank {rank} and {there} on rank {other}",
                number=index,
                here=_described(left, right),
                rank=here,
                there=_described(right, left),
                other=there,
            )
    shorter = min(len(mine), len(theirs))
    if len(mine) == len(theirs) or shorter < min(wrapped.placement.parameters, other.placement.parameters):
        return ""
    name, shape = (mine if len(mine) > len(theirs) else theirs)[shorter][:2]
    ranks = (here, there) if len(mine) > len(theirs) else (there, here)
    parameter = quoted("%s %s" % (name, list(shape)))
    template = "{parameter} is on rank {rank} and not on rank {other}"
    return say(template, parameter=parameter, rank=ranks[0], other=ranks[1])


def listed(run: Run, wrapped: Wrapped) -> List[Parameter]:
    """Return the whole list, else the first five of the event, which do not say whether they are trained."""
    rows = parameters(run, wrapped)
    return rows if rows is not None else [(leaf.name, tuple(leaf.shape), leaf.dtype, True) for leaf in wrapped.placement.first]


def _described(here: Parameter, other: Parameter) -> Text:
    code = "%s %s" % (here[0], list(here[1]))
    if here[2] != other[2]:
        code += " " + here[2]
    if here[3] == other[3]:
        return quoted(code)
    return say("{parameter} (trained)" if here[3] else "{parameter} (frozen)", parameter=quoted(code))


# The models of ranks side by side: which parameters the usual model and another one do not have in common.

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
    """Return each other model with the most frequent one; empty if all ranks wrap the same model."""
    groups = list(by_digest(first_wraps(run)).values())
    return [_pair(run, groups[0], other) for other in groups[1 : _OTHERS + 1]]


def _pair(run: Run, usual: List[Wrapped], other: List[Wrapped]) -> ModelPair:
    lists = [parameters(run, each[0]) for each in (usual, other)]
    whole = all(each is not None for each in lists)
    here, there = (listed(run, each[0]) for each in (usual, other))
    rows = _differing(here, there, whole=whole)
    counts = [each[0].placement.parameters for each in (usual, other)]
    same = len(here) - sum(bool(row.here) for row in rows)
    return ModelPair(wrapping_ranks(usual), wrapping_ranks(other), usual[0].call.at, other[0].call.at, counts[0], counts[1], rows, same, whole)


def _differing(here: Sequence[Parameter], there: Sequence[Parameter], *, whole: bool) -> List[ParameterPair]:
    """Return the parameters that differ; if none does, those whose places differ. A name beyond what is known of a model is not missing."""
    mine, theirs = ({parameter[0]: parameter for parameter in each} for each in (here, there))
    names = list(dict.fromkeys([*mine, *theirs]))
    if not whole:
        names = [name for name in names if name in mine and name in theirs]
    rows = [_row(name, mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)]
    return rows or _moved(here, there)


def _row(name: str, here: Optional[Parameter], there: Optional[Parameter]) -> ParameterPair:
    return ParameterPair(name, _text(here), _text(there))


def _text(parameter: Optional[Parameter]) -> str:
    if parameter is None:
        return ""
    code = quoted("%s %s" % (list(parameter[1]), parameter[2]))
    return code if parameter[3] else say("{parameter}, frozen", parameter=code)


def _moved(here: Sequence[Parameter], there: Sequence[Parameter]) -> List[ParameterPair]:
    places: Dict[str, Tuple[int, int]] = {one[0]: (number, -1) for number, one in enumerate(here)}
    for number, parameter in enumerate(there):
        places[parameter[0]] = (places.get(parameter[0], (-1, -1))[0], number)
    rows = [(name, *pair) for name, pair in places.items() if pair[0] != pair[1] and -1 not in pair]
    return [ParameterPair(name, _number(mine), _number(theirs)) for name, mine, theirs in rows]


def _number(number: int) -> Text:
    return say("number {number}", number=number)
