"""The position of one rank, from the end of its ledger: its process, its phase, and the call that it is in."""

import time
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ddp_probe.reading import alive, log_lines
from ddp_probe.reading.steps import StepTimes
from ddp_probe.reading.whole_ledger import Group, Header, Ledger, LedgerSite, Phase, Record
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.showing.watch import files

RUNNING, STOPPED, GONE, ENDED, FAILED, OFF, ELSEWHERE = "running", "stopped", "gone", "ended", "failed", "probe off", "on another host"
NO_LEDGER = "no ledger"
OVER = (GONE, ENDED, FAILED)
"""States of a process that does not run any more."""

_COLLECTIVES = frozenset(one.name for one in schema.OPERATIONS if one.code < schema.POINT_TO_POINT)
_BACKWARD = "backward"


class Position(NamedTuple):
    """The position of one rank."""

    rank: int
    host: str
    pid: int
    state: str
    world_size: int
    phase: str  # The innermost open one.
    step: int  # How often backward was entered.
    op: str  # The call that the rank is in, or was last in.
    number: int
    waits: bool  # It is in that call.
    group: Optional[Group]
    peer: int
    site: Optional[LedgerSite]
    since_ns: int  # When it entered what it is in; on its own monotonic clock.
    seconds: float  # For how long it has been there.
    began_ns: int  # When the file was made, on the same clock.
    moved_ns: int
    steps: StepTimes = StepTimes()  # The latest ones.

    @property
    def now_ns(self) -> int:
        """Return the time of the look on its own monotonic clock."""
        return self.since_ns + int(self.seconds * 1e9)


def of(found: Ledger, ended_at: float) -> Optional[Position]:
    """Return the position; None if the file is not a ledger. `ended_at` is when the run last wrote, for a process that is gone."""
    head = found.header
    if head is None:
        return None
    state = _state(head, found.path)
    call = _call(found)
    opened = [phase for phase in found.phases if phase.is_open and not phase.in_side_thread]
    inner = max(opened, key=lambda phase: phase.entered_ns, default=None)
    waits = call is not None and _blocks(call)
    since, site = _since(call, inner, head)
    return Position(
        rank=head.rank if head.rank >= 0 else files.rank_of(found.path),
        host=head.host,
        pid=head.pid,
        state=state,
        world_size=head.world_size,
        phase=inner.name if inner is not None else "",
        step=next((phase.times for phase in found.phases if phase.name == _BACKWARD), 0),
        op=call.op if call is not None else "",
        number=call.seq if call is not None else 0,
        waits=waits,
        group=call.group if call is not None else None,
        peer=call.peer if call is not None and call.op not in _COLLECTIVES else -1,
        site=site,
        since_ns=since,
        seconds=max(0.0, _now(head, state, ended_at) - since) / 1e9 if since else 0.0,
        began_ns=head.mono_ns,
        moved_ns=head.moved_ns,
        steps=found.steps,
    )


def _since(call: Optional[Record], inner: Optional[Phase], head: Header) -> Tuple[int, Optional[LedgerSite]]:
    """Return since when the rank is in what it is in, and the line of the job that it is at."""
    if call is not None and _blocks(call):
        return (call.waited_ns if call.is_issued else call.entered_ns), call.site
    if inner is not None:
        return inner.entered_ns, inner.site
    return head.moved_ns, call.site if call is not None else None


def _blocks(record: Record) -> bool:
    """Return whether the rank cannot go on before this call is over: it is in the call, or in the wait() for its work."""
    return record.is_open and (not record.is_issued or record.waited_ns > 0)


def _call(found: Ledger) -> Optional[Record]:
    """Return the call that the main thread is in, else that of another thread, else the last one."""
    own = [record for record in found.records if not record.is_inner]
    blocking = [record for record in own if _blocks(record)]
    main = [record for record in blocking if not record.in_side_thread]
    return next((calls[-1] for calls in (main, blocking, own) if calls), None)


def _now(head: Header, state: str, ended_at: float) -> float:
    """Return the present time on the clock of that host; for a process that is gone, the time when the run last wrote."""
    if state in OVER:
        return max(float(head.moved_ns), head.mono_ns + ended_at * 1e9 - head.wall_ns)
    if state == ELSEWHERE:
        return float(head.mono_ns + time.time_ns() - head.wall_ns)
    return float(time.monotonic_ns())


def _state(head: Header, path: str) -> str:
    found = _kernel_state(files.log_of(path), head.pid, head.host, head.born, head.boot)
    return OFF if found == RUNNING and head.closed_ns else found


def state_by_log(log: str, pid: int, host: str, born: int, boot: str) -> str:
    """Return the state of a process that has a log and no ledger."""
    found = _kernel_state(log, pid, host, born, boot) if pid else GONE
    return NO_LEDGER if found in (RUNNING, ELSEWHERE) else found


def _kernel_state(log: str, pid: int, host: str, born: int, boot: str) -> str:
    kernel = alive.kernel_state(pid, host, born, boot)
    if kernel is None:
        last = log_lines.last(log)
        return _end(last) if last.get("event") == "process.end" else ELSEWHERE
    if not kernel:
        return _end(log_lines.last(log))
    return STOPPED if kernel in "Tt" else RUNNING


def _end(last: Dict[str, Any]) -> str:
    """Return how a process ended, by the last line of its log."""
    if last.get("event") != "process.end":
        return GONE
    return FAILED if last.get("uncaught") or last.get("exit_code") else ENDED
