"""Which values the logs of a run hold of the names in the condition that took its ranks apart."""

from typing import List

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.standing import condition_values
from ddp_probe.standing.deciding import Statement
from ddp_probe.standing.sequence import SequenceParting


def compared_in(run: Run, left: SequenceParting, statement: Statement) -> str:
    """Return the values of the ranks side by side; empty if the logs hold none that differ."""
    standings = standings_of(run)
    frames = {rank: _frames(standing.process) for rank, standing in standings.ranks.items()}
    return condition_values.compared(standings, left, statement, frames)


def _frames(process: LoggedProcess) -> List[schema.FrameValues]:
    """Return the frames where a process stood last, and behind them those that an exception has left, which are the innermost."""
    ended = process.ended
    failed = ended.failure.values if ended is not None and ended.failure is not None else []
    over = process.final(schema.HangOver)
    moved_on = over.when if over is not None else 0.0
    suspected, answered = process.final(schema.HangSuspected), process.final(schema.Stacks)
    stood = [(call.when, call.begin.values) for call in (suspected,) if call is not None]
    stood += [(call.when, call.begin.values) for call in (answered,) if call is not None]
    when, values = max(stood, key=lambda look: look[0], default=(0.0, []))
    return [*(values if when > moved_on else []), *failed]
