"""The spans of one process over time: of the calls in its log, of the phases and collectives in its ledger, of the times in which nothing moved."""

from functools import lru_cache
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging.ledgers import as_site
from ddp_probe.reading import fold_file, ledger_file, whole_ledger
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.reading.whole_ledger import Ledger, Phase, Record
from ddp_probe.shared import ledger_schema, schema
from ddp_probe.shared.ledger_codec import RECORD, Values
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, joined, say

START, INIT, LOAD, WRAP, SAVE, PHASE, COLLECTIVE, DEVICE, HANG = "start", "init", "load", "wrap", "save", "phase", "collective", "device", "hang"
KINDS = (START, INIT, DEVICE, WRAP, LOAD, SAVE, PHASE, COLLECTIVE, HANG)
"""Every kind of span, roughly in the order in which they occur."""
FAILURE, FINDING, END = "failure", "finding", "end"
"""The kinds of marks."""


class TimeSpan(NamedTuple):
    """Something that one process did or was in, from begin to end, in seconds since 1970 on the run's common clock."""

    begin: float
    end: float  # For what never ended: when the process was last seen.
    ended: bool  # False if it never returned: the process hung or was killed, or runs still.
    kind: str  # One of KINDS.
    name: str  # "ddp.init", "broadcast 202", "forward".
    site: Optional[Site]
    at: Optional[LogLine]  # The line of the log for it; None if only the ledger has it.
    failed: bool  # It raised an exception.
    guilty: bool  # A finding's evidence points at this line, or a finding names its rank and this is the last thing that the rank did.
    number: int = 0  # The number of a collective in its group, or how often a phase had been entered; else 0.
    detail: str = ""  # What else is known of it, in one line.


class Mark(NamedTuple):
    """A moment of one process: an exception, a line that a finding points at, its end."""

    when: float
    kind: str  # FAILURE, FINDING or END.
    name: str
    at: Optional[LogLine]
    site: Optional[Site] = None


class MemoryMark(NamedTuple):
    """What one process held at a moment, of one device or of its host."""

    when: float
    what: str  # The device, or "host".
    sizes: Dict[str, int]  # Bytes: allocated and reserved on a device, resident on the host.


class Lane(NamedTuple):
    """One process over time."""

    rank: Optional[int]
    host: str
    pid: int  # 0 for a rank that wrote no file.
    guilty: bool  # A finding names its rank.
    spans: List[TimeSpan]  # Ordered by begin.
    begin: float
    end: float
    ending: str  # In the words of the table of ranks: "ended", "exit 1", "killed SIGKILL", "running".
    marks: List[Mark] = []  # By time.
    left_out: int = 0  # How many calls of its log and its ledger are not among the spans.
    memory: List[MemoryMark] = []  # By time.


class Timeline(NamedTuple):
    """A run over time."""

    begin: float
    end: float
    lanes: List[Lane]
    shown: int  # How many lanes are kept.
    of: int  # The number of processes, including those left out.


# Takes from a rank's ledger what a picture over time can show: the phases, the last calls and the longest ones. The others are counted.

_NUMBER, _ENTERED, _LEFT, _OUTER, _OP = map(RECORD.position, ("index", "entered_ns", "left", "outer", "op"))
_OPERATIONS = ledger_schema.names(ledger_schema.OPERATIONS)


class LedgerExtract(NamedTuple):
    """Part of one ledger. Its times are on the monotonic clock of its host; `base` makes seconds since 1970 on the run's common clock of them."""

    base: float
    moved: float  # When the process last wrote, on the common clock.
    records: List[Record]
    phases: List[Phase]
    left_out: int  # How many calls are not among the records.

    def when(self, mono_ns: int) -> float:
        """Return a time of the ledger on the common clock."""
        return self.base + mono_ns * 1e-9


def extract(process: LoggedProcess, most: int) -> Optional[LedgerExtract]:
    """Return the phases and at most this many calls of a process; None without a ledger. What its log says about groups is left out."""
    kept = process.ledger
    if kept is None or not (kept.groups or kept.phases):
        return None
    base, moved = kept.base + process.offset, kept.moved + process.offset
    full = _read(process)
    if full is None:
        records = _kept(kept)
        count = sum(calls.count for calls in kept.groups.values())
        return LedgerExtract(base, moved, records, list(kept.phases), max(0, count - len(records)))
    ledger, texts, rows = full
    outer = [row for row in rows if not row[_OUTER] and not _is_logged(row, process)]
    chosen = _chosen(outer, most)
    return LedgerExtract(base, moved, [whole_ledger.record(row, texts) for row in chosen], ledger.phases, len(outer) - len(chosen))


def _read(process: LoggedProcess) -> "Optional[Tuple[Ledger, Any, List[Values]]]":
    """Return the ledger as rows of numbers; None if the file is gone, as for a ledger that a fold kept without its calls."""
    data = process.ledger_data if process.ledger_data is not None else fold_file.held_bytes(process.ledger_file)
    try:
        reading = ledger_file.read(process.ledger_file) if data is None else ledger_file.Reading(data)
    except OSError:
        return None
    full = whole_ledger.parse_rows(reading.data, "", reading.before, reading.left_out)
    header = full[0].header
    return full if header is not None and header.version in ledger_schema.READS else None


def _kept(kept: RankLedger) -> List[Record]:
    """Return the calls that every reading keeps: the last one of each group, the open ones."""
    records = [calls.last for calls in kept.groups.values() if calls.last is not None]
    return sorted({record.number: record for record in [*records, *kept.open, *filter(None, [kept.last])]}.values(), key=lambda record: record.number)


def _is_logged(row: Values, process: LoggedProcess) -> bool:
    """Tell whether a call about groups is an event of the log as well."""
    return ledger_schema.ABOUT_GROUPS <= row[_OP] < ledger_schema.BATCH and "dist.%s" % _OPERATIONS.get(row[_OP]) in process.kept.kinds


def _chosen(rows: List[Values], most: int) -> List[Values]:
    """Return the last rows and, of those before, the open and then the longest ones, in order."""
    if len(rows) <= most:
        return rows
    before, last = rows[: -(most - most // 2)], rows[-(most - most // 2) :]
    return [*sorted(sorted(before, key=_length)[-(most // 2) :] if most > 1 else [], key=lambda row: int(row[_NUMBER])), *last]


def _length(row: Values) -> float:
    """Return how long a call took; an open one took longest."""
    return float("inf") if not row[_LEFT] & 3 else float((row[_LEFT] >> 2) - row[_ENTERED])


DRAWN: Dict[str, schema.Shown] = {name: event.shown for name, event in schema.EVENTS.items() if event.shown.span}
"""The events that are calls of the job with spans of their own, by name."""
_LONGEST = 1e8  # Seconds that a call may have taken: three years.
_END_OF_DATA = "dataloader"  # It raises StopIteration when there are no more batches.


def of_calls(process: LoggedProcess, seen: float, hidden: Collection[int]) -> Iterator[TimeSpan]:
    """Yield the calls of the log that are kept; those that never returned last until the process was last seen. Findings point at these lines."""
    for name, shown in DRAWN.items():
        for call in process.kept.of(name, process.offset):
            begin, until = _began(call), call.until
            # An end without a time: its line is missing, and the process went on.
            end = until if until is not None else seen if call.open else begin
            failed = call.failure is not None
            guilty = call.line in hidden or (failed and call.line_after in hidden)
            detail = _given(call.begin, shown.given)
            yield TimeSpan(begin, max(begin, end), not call.open, shown.span, name, call.site, call.at, failed, guilty, 0, detail)


def _began(call: LoggedCall[schema.Event]) -> float:
    """Return when a call began; if only the line after it exists, by the length that this line gives."""
    alone, seconds, when = call.begin is call.end, call.begin.seconds, call.when
    return when - seconds if alone and seconds is not None and 0 <= seconds < _LONGEST else when


def _given(event: schema.Event, fields: Sequence[str]) -> str:
    """Return what a call was given: the file, the device, the model and its device_ids, the backend."""
    parts: List[str] = []
    for field in fields:
        value: Any = event
        for name in field.split("."):
            value = getattr(value, name, None)
        if isinstance(value, list):
            value = "[%s]" % ", ".join(map(str, value))
        if parts:
            parts.append("%s %s" % (field, "none" if value is None else value))
        else:
            parts.append("" if value is None else str(value))
    return ", ".join(parts)


def of_ledger(part: LedgerExtract, seen: float, hidden: Collection[int]) -> Iterator[TimeSpan]:
    """Yield the phases and the collectives of a ledger; findings point at the records with these numbers."""
    for phase in part.phases:
        if phase.entered_ns:
            yield _phase(phase, part, seen)
    for record in part.records:
        if record.entered_ns:
            yield _collective(record, part, seen)._replace(guilty=record.number in hidden)


def _phase(phase: Phase, part: LedgerExtract, seen: float) -> TimeSpan:
    begin = part.when(phase.entered_ns)
    end = seen if phase.is_open else part.when(phase.left_ns)
    failed = phase.state == "raised" and (phase.name != _END_OF_DATA or phase.has_failed)
    detail = say("the latest of {count}", count=phase.times) if phase.times > 1 else ""
    return TimeSpan(begin, max(begin, end), not phase.is_open, PHASE, phase.name, as_site(phase.site), None, failed, False, phase.times, detail)


def _collective(record: Record, part: LedgerExtract, seen: float) -> TimeSpan:
    begin = part.when(record.entered_ns)
    # Asynchronous work that nobody waits for: the call itself has returned.
    is_left = not record.is_open or (record.is_issued and record.waited_ns < record.left_ns)
    end = part.when(record.left_ns) if is_left else seen
    name = "%s %d" % (record.op, record.seq) if record.group is not None else record.op
    site, failed = as_site(record.site), record.state == "raised"
    return TimeSpan(begin, max(begin, end), is_left, COLLECTIVE, name, site, None, failed, False, record.seq, _described(record, is_left))


def _described(record: Record, is_left: bool) -> Text:
    """Return what was sent, in which group, and how asynchronous work went."""
    group = record.group
    name, ranks = "", ""
    if group is not None:
        name, ranks = str(group.description or group.name or group.id), str(group.ranks)
    how = "asynchronous" if record.is_async else ""
    went = ""
    if record.is_open and is_left:
        went = "nobody has waited for it"
    elif record.state == "dropped":
        went = "its work was thrown away"
    return _in_words(record.elements, record.dtype, record.peer, name, ranks, how, went)


@lru_cache(maxsize=4096)
def _in_words(elements: int, dtype: str, peer: int, group: str, ranks: str, how: str, went: str) -> Text:
    """Return the description; most calls of a job are like others."""
    parts: List[Text] = []
    if elements:
        parts.append(say("{count} elements of {dtype}", count=elements, dtype=dtype))
    if peer >= 0:
        parts.append(say("peer or root {rank}", rank=peer))
    if group:
        parts.append(say("group {name} of ranks {ranks}", name=group, ranks=ranks))
    parts += [say(text) for text in (how, went) if text]
    return joined(parts, by=", ")


def of_hangs(process: LoggedProcess, seen: float) -> Iterator[TimeSpan]:
    """Yield the times in which nothing moved: from what the first hang.suspected says until hang.over, or until the process was last seen."""
    calls: List[LoggedCall[Any]] = [*process.calls(schema.HangSuspected), *process.calls(schema.HangOver)]
    first: Optional[LoggedCall[Any]] = None
    free = 0.0  # Two clocks tell begin and end: one time ends before the next begins.
    for call in sorted(calls, key=lambda call: call.line):
        if isinstance(call.begin, schema.HangSuspected):
            first = first or call
            continue
        begin = max(free, _still(call.begin.lasted if first is None else first.begin.since, first or call, process))
        free = max(begin, min(call.when, begin + (call.begin.lasted or call.when)))
        yield _hang(first or call, begin, free, ended=True)
        first = None
    if first is not None:
        yield _hang(first, max(free, _still(first.begin.since, first, process)), seen, ended=process.end is not None)


def _still(seconds: Optional[float], call: "LoggedCall[Any]", process: LoggedProcess) -> float:
    """Return since when nothing had moved, for a line that says for how long."""
    lasted = seconds if seconds is not None and 0 <= seconds < _LONGEST else 0.0
    return max(call.when - lasted, min(process.start_when, call.when))


def _hang(call: "LoggedCall[Any]", begin: float, end: float, *, ended: bool) -> TimeSpan:
    event, name, detail, number = call.begin, "hang", "", 0
    if isinstance(event, schema.HangSuspected):
        number = event.number or 0
        if event.operation:
            name = ("hang in %s %s" % (event.operation, event.number or "")).rstrip()
        detail = say("during {what}", what=event.during) if event.during else ""
    return TimeSpan(begin, max(begin, end), ended, HANG, name, call.site, call.at, False, False, number, detail)


def start(process: LoggedProcess, spans: List[TimeSpan], seen: float) -> Optional[TimeSpan]:
    """Return the time from the first line until the first thing that the process did."""
    if process.start is None:
        return None
    begin = process.start_when
    first = min((span.begin for span in spans if span.begin >= begin), default=None)
    end = first if first is not None else seen
    ended = first is not None or process.end is not None
    return TimeSpan(begin, max(begin, end), ended, START, "process.start", None, _first_line(process), False, False, 0, process.started.launcher)


def _first_line(process: LoggedProcess) -> Optional[LogLine]:
    call = process.first(schema.ProcessStart)
    return call.at if call is not None else None


def memory(process: LoggedProcess) -> Iterator[MemoryMark]:
    """Yield what the process held, as far as the reader keeps its lines."""
    for call in process.calls(schema.DeviceState):
        for device in call.begin.devices:
            sizes = {name: size for name, size in (("allocated", device.allocated), ("reserved", device.reserved)) if size is not None}
            if sizes:
                yield MemoryMark(call.when, device.device, sizes)
        if call.begin.system is not None and call.begin.system.rss:
            yield MemoryMark(call.when, "host", {"resident": call.begin.system.rss})
