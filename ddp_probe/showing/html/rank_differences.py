"""What must not differ between the ranks and does: environments, versions, cards, and their models, side by side."""

from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

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
