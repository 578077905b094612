"""What the reader knows of one launch: its processes, each folded to a summary, and what went wrong in them, on one clock."""

import re
from collections import deque
from operator import attrgetter
from typing import Any, Deque, Dict, Generic, Iterator, List, NamedTuple, Optional, Set, Tuple, Type, TypeVar, cast

from ddp_probe import schema
from ddp_probe.schema import Failure, Site

_WORD = re.compile(r"\w")

E = TypeVar("E", bound=schema.Event)

# Of one kind of event a process keeps so many from each end, and so many failures: ten thousand ranks have to fit in memory.
FIRST, LAST, FAILURES = 8, 8, 16


class LogLine(NamedTuple):
    """A line of a log."""

    file: str
    line: int


class LoggedCall(Generic[E]):
    """One call that was watched, or one point in time: what was written before it, and what after."""

    __slots__ = ("begin", "end", "file", "line", "line_after", "until", "when")

    def __init__(self, begin: E, file: str, line: int, when: float) -> None:
        self.begin = begin  # Written before the call; where that line is lost, the one after it.
        self.file = file
        self.line = line
        self.when = when  # Seconds since 1970 on the clock that all hosts were brought to.
        self.end: Optional[E] = None  # Written after it; None while it runs, and for ever where it hangs.
        self.line_after = 0
        self.until: Optional[float] = None

    @property
    def at(self) -> LogLine:
        """Return the line written before it; made when it is asked for, as half a million of them would fill the memory."""
        return LogLine(self.file, self.line)

    @property
    def ended_at(self) -> Optional[LogLine]:
        """Return the line written after it."""
        return LogLine(self.file, self.line_after) if self.line_after else None

    @property
    def name(self) -> str:
        """Return the event's name."""
        return str(self.begin.__struct_config__.tag)

    @property
    def failure(self) -> Optional[Failure]:
        """Return what the call raised."""
        return self.end.failure if self.end is not None else None

    @property
    def open(self) -> bool:
        """Tell that the call has not come back."""
        return self.end is None

    @property
    def site(self) -> Optional[Site]:
        """Return the line of the job that made the call."""
        return self.begin.site or (self.end.site if self.end is not None else None)


_line = attrgetter("line")


class _Kept:
    """The calls of one kind that a process keeps: the first, the last, and those that failed."""

    __slots__ = ("count", "failed", "failures", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.first: List[LoggedCall[Any]] = []
        self.last: Optional[Deque[LoggedCall[Any]]] = None  # Made when it is needed: most kinds come once or twice.
        self.failed: List[LoggedCall[Any]] = []

    def add(self, call: LoggedCall[Any]) -> None:
        self.count += 1
        if len(self.first) < FIRST:
            self.first.append(call)
            return
        if self.last is None:
            self.last = deque(maxlen=LAST)
        self.last.append(call)

    def all(self) -> List[LoggedCall[Any]]:
        calls = {id(call): call for call in (*self.first, *self.failed, *(self.last or ()))}
        return sorted(calls.values(), key=_line)


class Death(NamedTuple):
    """How a process ended, as its launcher tells."""

    rank: Optional[int]
    local_rank: Optional[int]
    pid: Optional[int]
    host: str
    exit_code: Optional[int]
    signal: str
    message: str
    first: bool  # The launcher holds it for the first to fail.
    when: float
    at: LogLine


class LoggedProcess:
    """One file: a rank, a program on its own, or a launcher."""

    __slots__ = (
        "_kept",
        "bytes",
        "death",
        "end",
        "failures",
        "file",
        "full",
        "holes",
        "host",
        "last",
        "last_at",
        "last_when",
        "lines",
        "local_rank",
        "offset",
        "open",
        "pid",
        "rank",
        "run",
        "start",
        "start_when",
        "unknown",
        "world_size",
    )

    def __init__(self, file: str) -> None:
        self.file = file
        self.rank: Optional[int] = None
        self.local_rank: Optional[int] = None
        self.world_size: Optional[int] = None
        self.host = ""
        self.pid = 0
        self.run = ""
        self.start: Optional[schema.Event] = None  # ProcessStart or LauncherStart
        self.start_when = 0.0
        self.end: Optional[schema.Event] = None  # ProcessEnd or LauncherEnd
        self.last: Optional[schema.Event] = None
        self.last_at = LogLine(file, 0)
        self.last_when = 0.0
        self.lines = 0
        self.bytes = 0
        self.full = False  # It reached DDP_PROBE_MAX_BYTES; what came after is not in it.
        self.holes = 0  # Lines that it lacks, by their numbers: what they told, nobody knows.
        self.offset = 0.0  # What was added to this host's clock.
        self.open: Dict[int, LoggedCall[Any]] = {}
        self.unknown: Dict[str, int] = {}  # Events of another version, by name.
        self.death: Optional[Death] = None
        self.failures: List[Failed] = []  # Its own, by time.
        self._kept: Dict[str, _Kept] = {}

    # --- what rules ask

    def calls(self, kind: Type[E]) -> List["LoggedCall[E]"]:
        """Return the calls of a kind that were kept, in order: the first eight, the last eight, and those that failed."""
        kept = self._kept.get(str(kind.__struct_config__.tag))
        return cast("List[LoggedCall[E]]", kept.all() if kept else [])

    def first(self, kind: Type[E]) -> Optional["LoggedCall[E]"]:
        """Return the first call of a kind."""
        calls = self.calls(kind)
        return calls[0] if calls else None

    def final(self, kind: Type[E]) -> Optional["LoggedCall[E]"]:
        """Return the last call of a kind."""
        calls = self.calls(kind)
        return calls[-1] if calls else None

    def count(self, kind: Type[schema.Event]) -> int:
        """Return how many calls of a kind there were, kept or not."""
        kept = self._kept.get(str(kind.__struct_config__.tag))
        return kept.count if kept else 0

    def count_failed(self, kind: Type[schema.Event]) -> int:
        """Return how many calls of a kind have failed, kept or not."""
        kept = self._kept.get(str(kind.__struct_config__.tag))
        return kept.failures if kept else 0

    def every(self) -> Iterator["LoggedCall[Any]"]:
        """Yield all kept calls, in the order of the file."""
        yield from sorted((call for kept in self._kept.values() for call in kept.all()), key=_line)

    @property
    def started(self) -> schema.ProcessStart:
        """Return process.start, or an empty one where the file lacks it."""
        return self.start if isinstance(self.start, schema.ProcessStart) else schema.ProcessStart()

    @property
    def ended(self) -> Optional[schema.ProcessEnd]:
        """Return process.end."""
        return self.end if isinstance(self.end, schema.ProcessEnd) else None

    @property
    def exit_code(self) -> Optional[int]:
        """Return the exit code, as far as the process or its launcher told it; minus the number for a signal."""
        if self.death is not None and self.death.exit_code is not None:
            return self.death.exit_code
        return getattr(self.end, "exit_code", None)

    @property
    def signal(self) -> str:
        """Return the signal that ended it, SIGTERM of the launcher included."""
        return self.death.signal if self.death is not None else ""

    @property
    def is_launcher(self) -> bool:
        """Tell a launcher's file."""
        return isinstance(self.start, schema.LauncherStart)

    @property
    def alone(self) -> bool:
        """Tell a program on its own; one that has started further ranks itself is the first of them."""
        return self.started.role == "solo" and (self.last is None or (self.last.world_size or 1) < 2)

    @property
    def waiting(self) -> Optional["LoggedCall[Any]"]:
        """Return the innermost call that it has not come back from."""
        return max(self.open.values(), key=_line) if self.open and self.end is None else None

    # --- what the reader tells

    def keep(self, call: "LoggedCall[Any]") -> None:
        """Take a call in."""
        kept = self._kept.get(call.name)
        if kept is None:
            kept = self._kept[call.name] = _Kept()
        kept.add(call)

    def keep_failed(self, call: "LoggedCall[Any]") -> None:
        """Take in that a call has failed."""
        kept = self._kept.get(call.name)
        if kept is not None:
            kept.failures += 1
        if kept is not None and len(kept.failed) < FAILURES:
            kept.failed.append(call)

    def shift(self, seconds: float) -> None:
        """Bring this process to the clock of the others."""
        self.offset += seconds
        self.start_when += seconds
        self.last_when += seconds
        for call in self.every():
            call.when += seconds
            call.until = None if call.until is None else call.until + seconds


class Failed:
    """One exception in one process, or one passage of a plain log, whoever told of it."""

    __slots__ = (
        "at",
        "calls",
        "consequence",
        "fatal",
        "frames",
        "headline",
        "inside",
        "message",
        "process",
        "rank",
        "site",
        "source",
        "type",
        "uncaught",
        "when",
    )

    def __init__(self, *, rank: Optional[int], when: float, at: LogLine, type: str, message: str) -> None:  # noqa: A002  # the exception's type
        self.rank = rank
        self.when = when  # In a plain log, the number of the line.
        self.at = at
        self.type = type  # Empty for a line of a plain log that is no exception.
        self.message = message
        self.frames: List[Site] = []  # Outermost first.
        self.headline = ""  # Of a passage of a plain log: the line that tells of the failure.
        self.inside = ""  # The exception that this one carries, in one line.
        self.source: Dict[Tuple[str, int], str] = {}  # The text of a frame's line, where a plain log has it.
        self.site: Optional[Site] = None  # The line of the job.
        self.process: Optional[LoggedProcess] = None
        self.calls: List[LoggedCall[Any]] = []  # The watched calls that it went through, innermost first.
        self.uncaught = False  # It reached the top.
        self.fatal = True  # The process did not survive it, or nobody can tell.
        self.consequence = ""  # Whose loss it reports, where it is another one's failure: "a peer is gone", "the launcher ended it".

    @property
    def text(self) -> str:
        """Return the exception as a traceback's last line has it."""
        short = self.type.rpartition(".")[2]
        return "%s: %s" % (short, self.message) if short else self.message

    def said(self, limit: int) -> str:
        """Return what it says in one line of at most so many characters; of one that carries another, both."""
        return one_line(self.type, self.headline or self.message, self.inside, limit)

    @property
    def trail(self) -> str:
        """Return the frames, one a line, as ``file:line in function: source``."""
        return "\n".join("%s:%d in %s: %s" % (f.file, f.line, f.function, self.source.get((f.file, f.line), "")) for f in self.frames)


def one_line(kind: str, message: str, inside: str, limit: int) -> str:
    """Return an exception in one line, and in brackets the one that it carries; what is cut off leaves an ellipsis."""
    short = kind.rpartition(".")[2]
    first = next((line.strip() for line in message.splitlines() if _WORD.search(line)), "")  # No rule of ==== or ----.
    text = "%s: %s" % (short, first) if short and first else short or first
    room = max(limit - len(inside) - 3, limit // 2) if inside else limit
    text = text if len(text) <= room else text[: room - 1].rstrip() + "…"
    return "%s (%s)" % (text.rstrip(".:"), inside) if inside else text


class TextLog(NamedTuple):
    """A plain log: what it has of failures, and all of its text that could matter."""

    file: str
    lines: int
    failures: List[Failed]
    text: str  # The passages of failures and warnings, in order, at most a MB.
    passed: int = 0  # Lines in its middle that were not read: there were too many that may tell of trouble.
    dropped: int = 0  # Failures in its middle that were not kept.


class Inventory:
    """What there was to read, and what of it could not be."""

    def __init__(self) -> None:
        self.files: List[str] = []
        self.lines = 0
        self.bytes = 0
        self.skipped: Dict[str, Dict[str, int]] = {}  # file to reason to how many lines
        self.unreadable: Dict[str, str] = {}  # file to reason
        self.notes: List[str] = []
        self.clock_spread: Optional[float] = None  # Seconds between the hosts' clocks, where common events tell.

    def skip(self, file: str, reason: str, count: int = 1) -> None:
        """Count a line that could not be read."""
        reasons = self.skipped.setdefault(file, {})
        reasons[reason] = reasons.get(reason, 0) + count


class Run:
    """One launch, as far as its files tell."""

    def __init__(self) -> None:
        self.name = ""
        self.folders: List[str] = []
        self.processes: List[LoggedProcess] = []  # Ranks and programs on their own, of the last generation, by rank.
        self.earlier: List[LoggedProcess] = []  # Those that the launcher started before the last time.
        self.attempts: List[Run] = []  # The same, one run for each start, the first one first.
        self.others: List[LoggedProcess] = []  # Of other launches that these files are of.
        self.launchers: List[LoggedProcess] = []
        self.deaths: List[Death] = []
        self.failures: List[Failed] = []  # By time; those of plain logs by line.
        self.texts: List[TextLog] = []
        self.expected: Optional[int] = None  # How many ranks there should be.
        self.elsewhere: List[int] = []  # Ranks of nodes of which no file is here: whether they wrote, nobody can tell.
        self.running: Set[int] = set()  # Ranks whose process is alive on this host.
        self.inventory = Inventory()
        self._ranks: Tuple[List[LoggedProcess], Dict[int, LoggedProcess]] = ([], {})
        self._deaths: Tuple[List[Death], Dict[Optional[int], Death]] = ([], {})

    @property
    def ranks(self) -> Dict[int, LoggedProcess]:
        """Return the processes that have a rank, by rank."""
        if self._ranks[0] is not self.processes:  # made once a list: rules ask for each of ten thousand ranks
            self._ranks = (self.processes, {process.rank: process for process in self.processes if process.rank is not None})
        return self._ranks[1]

    @property
    def missing(self) -> List[int]:
        """Return the ranks that should be there and left no file; those of nodes of which nothing is here may have left one."""
        return sorted(set(range(self.expected)) - set(self.ranks) - set(self.elsewhere)) if self.expected else []

    @property
    def astray(self) -> List[int]:
        """Return the missing ranks that left a file all the same, as their launcher tells: it was not copied, or is gone."""
        known = {(process.host, process.pid) for process in self.processes}
        found = []
        for launcher in self.launchers:
            if not isinstance(launcher.end, schema.LauncherEnd):
                continue
            children = [death for death in self.deaths if death.host == launcher.host and death.pid is not None]
            if any((death.host, death.pid) in known for death in children):  # Where a shell starts each rank, pids tell nothing.
                found += [death.rank for death in children if death.rank is not None and death.local_rank not in launcher.end.silent_ranks]
        return sorted(set(found).intersection(self.missing))

    @property
    def whole(self) -> bool:
        """Tell that nothing is known to be missing, neither a rank's file nor a line of one."""
        return not self.missing and not any(process.holes for process in self.processes)

    def death(self, rank: int) -> Optional[Death]:
        """Return how a rank ended, as its launcher tells, whether it left a file or not."""
        if self._deaths[0] is not self.deaths:
            self._deaths = (self.deaths, {death.rank: death for death in reversed(self.deaths)})
        return self._deaths[1].get(rank)
