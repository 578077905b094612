"""What must not differ between the ranks and does: environments, versions, cards, and their models, side by side."""

from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.judging import rank_models
from ddp_probe.judging.rank_models import ParameterPair
from ddp_probe.judging.rules import environment_skew, hardware_skew, version_skew
from ddp_probe.judging.skews import Skew
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.showing.html.quotes import LineLink, Quotes
from ddp_probe.wording.words import named

_VALUES = 6  # Values of one name.
_NAMES = 200


class SkewValue(NamedTuple):
    """A value, empty if it is not set, and the ranks that have it."""

    value: str
    who: str
    usual: bool
    link: Optional[LineLink]


class SkewRow(NamedTuple):
    """A name whose values differ."""

    kind: str  # variable, version or card.
    name: str
    values: List[SkewValue]
    more: int


class CommonValue(NamedTuple):
    """A name with the value of all ranks; empty if each rank has its own."""

    name: str
    value: str


class EnvironmentPart(NamedTuple):
    """What differs, and the rest."""

    skews: List[SkewRow]
    variables: List[CommonValue]
    versions: List[CommonValue]
    ranks: int


def environment_part(run: Run, quotes: Quotes) -> EnvironmentPart:
    """Compare the first lines of all ranks."""
    differing = hardware_skew.skew_of(run)
    cards = [] if differing is None else [differing]
    by_kind = (("variable", environment_skew.skews(run)), ("version", version_skew.skews(run)), ("card", cards))
    rows = [_row(kind, skew, run, quotes) for kind, skews in by_kind for skew in skews]
    starts = [process for process in run.processes if process.start is not None]
    return EnvironmentPart(rows, _common(starts, "environment"), _common(starts, "versions"), len(starts))


def _row(kind: str, skew: Skew, run: Run, quotes: Quotes) -> SkewRow:
    groups: Dict[str, List[int]] = {}
    for rank, value in sorted(skew.all.items()):
        groups.setdefault(value, []).append(rank)
    order = sorted(groups, key=lambda value: (value != skew.usual, -len(groups[value])))
    values = [SkewValue(value, named(groups[value], 8), value == skew.usual, _link(run, groups[value][0], quotes)) for value in order[:_VALUES]]
    return SkewRow(kind, skew.name, values, max(0, len(order) - _VALUES))


def _link(run: Run, rank: int, quotes: Quotes) -> Optional[LineLink]:
    process = run.ranks.get(rank)
    return quotes.link(LogLine(process.file, 1)) if process is not None else None


def _common(starts: List[LoggedProcess], field: str) -> List[CommonValue]:
    """Return each name with the value of all ranks; a name that only some ranks have counts as different."""
    counts: Counter[Tuple[str, Any]] = Counter()
    names: Dict[str, str] = {}
    for process in starts:
        for name, value in getattr(process.started, field).items():
            counts[name, value] += 1
            names.setdefault(name, value)
    return [CommonValue(name, value if counts[name, value] == len(starts) else "") for name, value in sorted(names.items())[:_NAMES]]


# The models of ranks side by side, if they differ.

_ROWS = 40


class ModelTable(NamedTuple):
    """Two models, the usual one first."""

    here: str
    there: str
    link_here: LineLink
    link_there: LineLink
    parameters_here: int
    parameters_there: int
    rows: List[ParameterPair]
    more: int
    same: int
    whole: bool


def model_tables(run: Run, quotes: Quotes) -> List[ModelTable]:
    """Return a table for each model beside the usual one."""
    return [_table(pair, quotes) for pair in rank_models.pairs(run)]


def _table(pair: rank_models.ModelPair, quotes: Quotes) -> ModelTable:
    return ModelTable(
        named(pair.ranks_here, 8),
        named(pair.ranks_there, 8),
        quotes.link(pair.at_here),
        quotes.link(pair.at_there),
        pair.parameters_here,
        pair.parameters_there,
        pair.rows[:_ROWS],
        max(0, len(pair.rows) - _ROWS),
        pair.same,
        pair.whole,
    )
