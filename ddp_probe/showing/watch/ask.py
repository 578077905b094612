"""Asks running ranks for their stacks: a file in the run's folder is the request, an event in each rank's log the answer. No signal, no ptrace.

Ranks that do not answer are named, with the reason; stacks that they left earlier are shown instead.
"""

import os
import re
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from ddp_probe.reading import alive, find, log_lines, process_files, rank_stacks
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.showing.watch import watched_files
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import ONE, quoted

LOOKED_AT = "looked at"  # The role of a process that `attach` has found: nothing in it can answer.
_FOLDER = "ask"
_REQUEST = re.compile(r"stacks\.(\d{1,9})$")
_PAUSE = 0.1
_PIECE = 1 << 24


class Silence(NamedTuple):
    """Why a rank gave no stacks, and what to do about it."""

    why: Text  # What is true of a rank: `has ended, and left no stacks`.
    what_to_do: Text
    detail: str = ""  # What concerns this rank alone.

    def whole(self) -> Text:
        """Return why, with the rank's own detail."""
        return say("{why}: {detail}", why=self.why, detail=self.detail) if self.detail else self.why


class Collected(NamedTuple):
    """The stacks of the ranks, and why the others gave none."""

    stacks: List[rank_stacks.RankStacks]
    silent: Dict[int, Silence]  # Includes ranks that have only earlier stacks.


class _Rank:
    """One rank that may be asked."""

    def __init__(self, log: str) -> None:
        first = log_lines.first(log)
        self.log = log
        self.rank = rank_stacks.rank_of(log)
        self.host, self.pid = str(first.get("host", "")), _number(first, "pid")
        self._looked_at = first.get("role") == LOOKED_AT
        self._same = (_number(first, "born"), str(first.get("boot", "")))
        self.offset = process_files.size(log)

    def state(self) -> str:
        """Return ended, gone, stopped, looked at, or an empty string if it may answer."""
        if self._looked_at:
            return LOOKED_AT
        kernel = alive.kernel_state(self.pid, self.host, *self._same) if self.pid else None
        if log_lines.last(self.log).get("event") == "process.end":
            return "ended"
        return "" if kernel is None else "gone" if not kernel else "stopped" if kernel in "Tt" else ""

    def added(self) -> bytes:
        """Return the complete lines that were added since the last call."""
        try:
            with open_bytes(self.log) as stream:
                stream.seek(self.offset)
                data = stream.read(_PIECE)
        except OSError:
            return b""
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole


def collect(folders: List[str], wanted: Callable[[int], bool], wait: float) -> Collected:
    """Ask the ranks that run, wait for their answers, and take what the others have left."""
    ranks = [_Rank(log) for log in _latest(watched_files.logs(folders)) if wanted(rank_stacks.rank_of(log))]
    states = {rank.rank: rank.state() for rank in ranks}
    running = [rank for rank in ranks if not states[rank.rank]]
    answers, fault = _answers(folders, running, wait) if running and wait > 0 else ({}, "")
    stacks, silent = list(answers.values()), {}
    for rank in ranks:
        if rank.rank in answers:
            continue
        left = rank_stacks.recorded(rank.log)
        stacks += [left] if left is not None else []
        if left is None or not states[rank.rank]:
            silent[rank.rank] = _silence(rank, states[rank.rank] or rank.state(), wait, fault)
    return Collected(sorted(stacks, key=lambda stacks: stacks.rank), silent)


def _latest(logs: Sequence[str]) -> List[str]:
    """Return one log for each rank: of a rank that was started again, the latest."""
    chosen = {rank_stacks.rank_of(log): log for log in sorted(logs, key=find.written)}
    return [chosen[rank] for rank in sorted(chosen)]


def _answers(folders: List[str], ranks: Sequence[_Rank], wait: float) -> Tuple[Dict[int, rank_stacks.RankStacks], str]:
    """Return the answers that come in time, by rank, and why nothing could be asked."""
    try:
        request = _request(folders)
    except OSError as exc:
        return {}, say(
            "the request cannot be written to {folder}: {reason}",
            folder=folders[0],
            reason=quoted(exc.strerror),
        )
    answers: Dict[int, rank_stacks.RankStacks] = {}
    end = time.monotonic() + wait
    while True:
        pending = [rank for rank in ranks if rank.rank not in answers]
        for rank in pending:
            answer = rank_stacks.answer(rank.added(), rank.log, request)
            if answer is not None:
                answers[rank.rank] = answer
        if all(rank.rank in answers or rank.state() for rank in pending) or time.monotonic() >= end:
            return answers, ""
        time.sleep(_PAUSE)


def _request(folders: List[str]) -> int:
    """Write the request into each folder, under a number that was not used before; return the number."""
    for folder in folders:
        os.makedirs(os.path.join(folder, _FOLDER), exist_ok=True)
    used = [int(match[1]) for folder in folders for name in os.listdir(os.path.join(folder, _FOLDER)) for match in [_REQUEST.match(name)] if match]
    number = max(used, default=0) + 1
    while True:
        try:
            for folder in folders:
                os.close(os.open(os.path.join(folder, _FOLDER, "stacks.%d" % number), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:  # Another process asks at the same moment.
            number += 1
        else:
            return number


def _silence(rank: _Rank, state: str, wait: float, fault: str) -> Silence:
    where = say("process {pid} on {host}", pid=rank.pid, host=rank.host or say("an unknown host"))
    if state == "ended":
        return Silence(say("{they:has|have} ended, and left no stacks", they=ONE), say("'report' shows how it ended."))
    if state == LOOKED_AT:
        why = say("{they:was|were} looked at from outside, and gave no stack", they=ONE)
        return Silence(why, say("'report' says why; 'attach' looks again."))
    if state == "gone":
        why = say("{they:is|are} gone without an end line, and left no stacks", they=ONE)
        return Silence(why, say("'report' says what it did last."))
    if state == "stopped":
        then = say("'kill -CONT {pid}' there lets it go on; then ask again.", pid=rank.pid)
        return Silence(say("{they:is|are} stopped", they=ONE), then, where)
    if fault:
        return Silence(say("{they:was|were} not asked", they=ONE), say("Ask as the user who runs the job."), quoted(fault))
    if wait <= 0:
        return Silence(say("{they:was|were} not asked, and left no stacks", they=ONE), say("Ask without --wait 0."))
    then = say(
        "Native code may hold the GIL: 'attach {pid}' reads its stack from outside. 'watch' shows its call, and --wait 60 waits longer.",
        pid=rank.pid,
    )
    return Silence(say("did not answer within {wait:g} s", wait=wait), then, where)


def _number(event: Dict[str, Any], name: str) -> int:
    value = event.get(name)
    return value if isinstance(value, int) else 0
