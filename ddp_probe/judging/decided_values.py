"""Which values the logs of a run hold of the names in the condition that took its ranks apart."""

import os
from typing import Any, Dict, List, Mapping, Optional

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.standing import condition_values, watched_times
from ddp_probe.standing.deciding import Statement
from ddp_probe.standing.sequence import SequenceParting
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, quoted

_SHOWN = 4
_KINDS = ("if", "while", "and", "or", "conditional")


def compared_in(run: Run, left: SequenceParting, statement: Statement) -> str:
    """Return the values of the ranks side by side; empty if the logs hold none that differ."""
    watched = _watched(run, statement)
    if watched:
        return watched
    standings = standings_of(run)
    frames = {rank: _frames(standing.process) for rank, standing in standings.ranks.items()}
    return condition_values.compared(standings, left, statement, frames)


def watch_it(run: Run, left: SequenceParting) -> List[str]:
    """Offer a run that watches the statement that decided, if the values of some rank are not known."""
    decision = left.decision
    statement = decision.statements[0] if decision is not None and decision.statements else None
    if statement is None or statement.kind not in _KINDS or not statement.names:
        return []
    has_all = all(condition_values.values_at(_frames(process), statement) for process in run.ranks.values())
    if has_all or any(_reached(process, statement) for process in run.ranks.values()):
        return []
    watched = "%s:%d" % (os.path.basename(statement.file), statement.line)
    return [say("To see the values of each rank, run it again with DDP_PROBE_WATCH={watched}.", watched=watched)]


def _watched(run: Run, statement: Statement) -> str:
    """Say from which time on the ranks decided differently at a watched line."""
    by_rank = {rank: _reached(process, statement) for rank, process in run.ranks.items()}
    reached = {rank: times for rank, times in by_rank.items() if times}
    unlike = watched_times.first_unlike(reached, _condition(statement))
    if unlike is None:
        return ""
    said = listed([_of_rank(unlike, rank) for rank in unlike.values][:_SHOWN], by="; ")
    more = len(unlike.values) - _SHOWN
    rest = say("; and {count} more {count:rank|ranks}", count=more) if more > 0 else ""
    if unlike.times == 1:
        return say("unlike from the first time on: {values}{rest}", values=said, rest=rest)
    template = "alike {times} {times:time|times}, then not: {values}{rest}"
    return say(template, times=unlike.times - 1, values=said, rest=rest)


def _of_rank(unlike: watched_times.UnlikeTime, rank: int) -> Text:
    values = quoted(", ".join("%s %s" % item for item in unlike.values[rank].items()))
    holds = unlike.says[rank]
    if holds is None:
        return say("{who}: {values}", who=named([rank]), values=values)
    if holds:
        return say("{who}: {values} (true)", who=named([rank]), values=values)
    return say("{who}: {values} (false)", who=named([rank]), values=values)


def _condition(statement: Statement) -> str:
    """Return the condition of a statement, without the word before it."""
    word, _, rest = statement.text.partition(" ")
    return rest if word in ("if", "while", "elif") else statement.text


def _reached(process: LoggedProcess, statement: Statement) -> Dict[int, Mapping[str, str]]:
    """Return the values at each time at which a process has reached a line, by how often it had been there."""
    reached: Dict[int, Mapping[str, str]] = {}
    for call in process.calls(schema.LineReached):
        site = call.begin.site
        if site is not None and (site.file, site.line) == (statement.file, statement.line):
            reached[call.begin.times] = call.begin.values
    return reached


def _frames(process: LoggedProcess) -> List[schema.FrameValues]:
    """Return the frames where a process stood last, and behind them those that an exception has left, which are the innermost."""
    ended = process.ended
    failed = ended.failure.values if ended is not None and ended.failure is not None else []
    over = process.final(schema.HangOver)
    moved_on = over.when if over is not None else 0.0
    looks: List[Optional[LoggedCall[Any]]] = [process.final(schema.HangSuspected), process.final(schema.Stacks)]
    stood = [(call.when, call.begin.values) for call in looks if call is not None]
    when, values = max(stood, key=lambda look: look[0], default=(0.0, []))
    return [*(values if when > moved_on else []), *failed]
