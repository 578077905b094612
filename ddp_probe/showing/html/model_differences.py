"""Shows the models of ranks side by side, if they differ."""

from typing import List, NamedTuple

from ddp_probe.judging import rank_models
from ddp_probe.judging.rank_models import ParameterPair
from ddp_probe.reading.model import Run
from ddp_probe.showing.html.quotes import LineLink, Quotes
from ddp_probe.wording.words import named

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
