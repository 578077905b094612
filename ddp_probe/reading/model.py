"""The reader's model of one launch: a summary of each process, and its failures, all on one clock."""

import re
from operator import attrgetter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple, Type

from ddp_probe.reading import rank_ledger
from ddp_probe.reading.inventory import Inventory
from ddp_probe.reading.logged_call import NO_CALLS, E, LoggedCall, LogLine
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.reading.whole_ledger import Ledger, Record
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import say

_WORD = re.compile(r"\w")


class Death(NamedTuple):
    """How a process ended, as reported by its launcher."""

    rank: Optional[int]
    local_rank: Optional[int]
    pid: Optional[int]
    host: str
    exit_code: Optional[int]
    signal: str
    message: str
    first: bool  # The launcher reports it as the first to fail.
    when: float
    at: LogLine


class LoggedProcess:
    """One file: a rank, a solo program, or a launcher."""

    __slots__ = (
        "_ledger",
        "bytes",
        "death",
        "end",
        "failed_at",
        "failures",
        "file",
        "full",
        "holes",
        "host",
        "kept",
        "last_at",
        "last_when",
        "last_world_size",
        "ledger_data",
        "ledger_file",
        "lines",
        "local_rank",
        "offset",
        "open",
        "pid",
        "rank",
        "run",
        "start",
        "start_when",
        "state",
        "stood_until",
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
        self.last_at = LogLine(file, 0)
        self.last_when = 0.0
        self.last_world_size: Optional[int] = None  # According to its last line.
        self.lines = 0
        self.bytes = 0
        self.full = False  # The file reached DDP_PROBE_MAX_BYTES; later events are not in it.
        self.holes = 0  # How many lines are missing, by their sequence numbers.
        self.offset = 0.0  # Seconds added to this host's clock.
        self.open: Tuple[LoggedCall[Any], ...] = ()  # Calls that have not returned, by the clock of its host.
        self.unknown: Dict[str, int] = {}  # Events of an unknown version, by name.
        self.death: Optional[Death] = None
        self.failures: List[Failed] = []  # Those of this process, by time.
        self.kept = NO_CALLS
        self.ledger_file = ""  # The ledger of collectives beside the log; empty if there is none.
        self.ledger_data: Optional[bytes] = None  # Its bytes, in an example.
        self._ledger: Optional[RankLedger] = None
        self.failed_at: Optional[float] = None  # When its last exception was raised, by its host's clock, if its ledger goes on after that.
        self.stood_until: Optional[float] = None  # When a signal from outside arrived, by its host's clock, if it was alive then.
        self.state: Optional[str] = None  # In a fold, the kernel's letter for it at that time; None if unknown.

    # --- for rules

    @property
    def ledger(self) -> Optional[RankLedger]:
        """Return what is kept of the process's ledger; it is read when it is first asked for."""
        self.read_ledger()
        return self._ledger

    def read_ledger(self) -> None:
        """Read the process's ledger, if it has one."""
        if self._ledger is None and self.ledger_file:
            ledger = rank_ledger.read(self.ledger_file, self._ledger_bytes())
            if self.pid and ledger.pid and ledger.pid != self.pid:
                ledger = RankLedger(
                    ledger.path,
                    say(
                        "It was written by process {writer}, and the log beside it by process {pid}.",
                        writer=ledger.pid,
                        pid=self.pid,
                    ),
                )
            self._ledger = ledger

    def hold_ledger(self, file: str, ledger: RankLedger) -> None:
        """Take what was kept of its ledger when it was folded."""
        self.ledger_file, self._ledger = file, ledger

    def whole_ledger(self) -> Ledger:
        """Return all that the ledger holds, read again."""
        return rank_ledger.whole(self.ledger_file, self._ledger_bytes())

    def _ledger_bytes(self) -> Optional[bytes]:
        until = self.stood_until if self.stood_until is not None else self.failed_at
        return self.ledger_data if until is None else rank_ledger.as_of(self.ledger_file, self.ledger_data, until) or self.ledger_data

    def stand(self, until: float) -> None:
        """Take the ledger as it was at this time, on the run's common clock: what the process did later does not show where it stood."""
        kept = self.ledger
        if kept is not None and kept.complete and kept.moved + self.offset > until:
            self._ledger = None
        self.stood_until = until - self.offset

    def leave_out_exit(self) -> None:
        """Take the ledger of a process that an exception ended as it was then: what runs at exit, such as a last barrier, came after it."""
        when, ended, kept = self.over[0] - self.offset, self.ended, self.ledger
        if ended is not None and ended.uncaught and self.stood_until is None and kept is not None and kept.complete and kept.moved > when:
            self._ledger, self.failed_at = None, when
            if self.ledger is None or self.ledger.last is None:  # Its clock is another one: it held calls before, and none is left.
                self._ledger, self.failed_at = kept, None

    def calls(self, kind: Type[E]) -> List["LoggedCall[E]"]:
        """Return the kept calls of a kind, in order: the first eight, the last eight, and the failed ones."""
        return self.kept.of(kind.__struct_config__.tag, self.offset)  # type: ignore[arg-type]  # each kind has a name

    def first(self, kind: Type[E]) -> Optional["LoggedCall[E]"]:
        """Return the first call of a kind."""
        return self.kept.one(str(kind.__struct_config__.tag), 0, self.offset)

    def final(self, kind: Type[E]) -> Optional["LoggedCall[E]"]:
        """Return the last call of a kind."""
        return self.kept.one(str(kind.__struct_config__.tag), -1, self.offset)

    def count(self, kind: Type[schema.Event]) -> int:
        """Return how many calls of a kind there were, kept or not."""
        kept = self.kept.kinds.get(str(kind.__struct_config__.tag))
        return kept.all if kept else 0

    def count_failed(self, kind: Type[schema.Event]) -> int:
        """Return how many calls of a kind have failed, kept or not."""
        kept = self.kept.kinds.get(str(kind.__struct_config__.tag))
        return kept.failed if kept else 0

    def every(self) -> Iterator["LoggedCall[Any]"]:
        """Return all kept calls, in the order of the file."""
        return self.kept.every(self.offset)

    @property
    def started(self) -> schema.ProcessStart:
        """Return process.start, or an empty one if the file has none."""
        return self.start if isinstance(self.start, schema.ProcessStart) else schema.ProcessStart()

    @property
    def ended(self) -> Optional[schema.ProcessEnd]:
        """Return process.end."""
        return self.end if isinstance(self.end, schema.ProcessEnd) else None

    @property
    def exit_call(self) -> Optional[schema.Site]:
        """Return the line of the exit call that left the program, with a code other than 0 or in an except clause."""
        called = self.final(schema.ProcessExit)
        if called is not None and called.site is not None:
            return called.site
        return self.ended.site if self.ended is not None else None

    @property
    def caught_at_exit(self) -> Optional[schema.Failure]:
        """Return the exception that was being handled when the program was left by an exit call."""
        called = self.final(schema.ProcessExit)
        return called.begin.caught if called is not None else None

    @property
    def over(self) -> Tuple[float, LogLine]:
        """Return the time and the line of its last words, or of its last line if it left none.

        A rank that hangs while it exits has written them already, and its watcher goes on writing.
        """
        kind = type(self.end) if self.end is not None else None
        call = self.final(kind) if kind is not None else None
        return (self.last_when, self.last_at) if call is None else (call.when, call.at)

    @property
    def exit_code(self) -> Optional[int]:
        """Return the exit code, if the process or its launcher reported one; for a signal, minus its number."""
        if self.death is not None and self.death.exit_code is not None:
            return self.death.exit_code
        return getattr(self.end, "exit_code", None)

    @property
    def signal(self) -> str:
        """Return the signal that ended it, including the launcher's SIGTERM."""
        return self.death.signal if self.death is not None else ""

    @property
    def is_launcher(self) -> bool:
        """Return whether this is a launcher's file."""
        return isinstance(self.start, schema.LauncherStart)

    @property
    def alone(self) -> bool:
        """Return whether this is a solo program that never joined a group of several ranks."""
        return self.started.role == "solo" and (self.last_world_size or 1) < 2

    @property
    def waiting(self) -> Optional["LoggedCall[Any]"]:
        """Return the innermost call that has not returned."""
        inner = max(self.open, key=attrgetter("line")) if self.open and self.end is None else None
        return None if inner is None else LoggedCall(inner.begin, inner.file, inner.line, inner.when + self.offset)

    # --- for the reader

    def shift(self, seconds: float) -> None:
        """Shift this process to the common clock."""
        self.offset += seconds
        self.start_when += seconds
        self.last_when += seconds


class Failed:
    """One exception of one process, or one passage of a plain log, whatever its source."""

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
        self.when = when  # In a plain log, the line number.
        self.at = at
        self.type = type  # Empty for a line of a plain log that is not an exception.
        self.message = message
        self.frames: List[Site] = []  # Outermost first.
        self.headline = ""  # For a passage of a plain log: the line that reports the failure.
        self.inside = ""  # The nested exception, in one line.
        self.source: Dict[Tuple[str, int], str] = {}  # The source text of a frame, if a plain log has it.
        self.site: Optional[Site] = None  # The line of the job.
        self.process: Optional[LoggedProcess] = None
        self.calls: List[LoggedCall[Any]] = []  # The watched calls that it passed through, innermost first.
        self.uncaught = False  # It was not caught.
        self.fatal = True  # The process did not survive it, or that is unknown.
        self.consequence = ""  # If it only reports the failure of another process; see reading/failures.py.

    @property
    def text(self) -> str:
        """Return the exception as in a traceback's last line."""
        short = self.type.rpartition(".")[2]
        return "%s: %s" % (short, self.message) if short else self.message

    def said(self, limit: int) -> str:
        """Return its message in one line of limited length, with the nested exception if there is one."""
        return one_line(self.type, self.headline or self.message, self.inside, limit)

    @property
    def trail(self) -> str:
        """Return the frames, one per line, as ``file:line in function: source``."""
        return "\n".join("%s:%d in %s: %s" % (f.file, f.line, f.function, self.source.get((f.file, f.line), "")) for f in self.frames)


def one_line(kind: str, message: str, inside: str, limit: int) -> str:
    """Return an exception in one line, with the nested one in brackets; an ellipsis marks a cut."""
    short = kind.rpartition(".")[2]
    first = next((line.strip() for line in message.splitlines() if _WORD.search(line)), "")  # Skips a line of only ==== or ----.
    text = "%s: %s" % (short, first) if short and first else short or first
    room = max(limit - len(inside) - 3, limit // 2) if inside else limit
    text = text if len(text) <= room else text[: room - 1].rstrip() + "…"
    return "%s (%s)" % (text.rstrip(".:"), inside) if inside else text


class OutsideEnd(NamedTuple):
    """The signal from outside that ended the run: its time and name, the process that got it, and the line that shows it.

    `did` is the first call that a handler of the job made for it.
    """

    when: float
    signal: str
    to: str
    at: LogLine
    did: Optional[Record] = None


class TextLog(NamedTuple):
    """A plain log: its failures, and the part of its text that could matter."""

    file: str
    lines: int
    failures: List[Failed]
    text: str  # The passages with failures and warnings, in order, at most 1 MB.
    passed: int = 0  # Lines in the middle that were not read, because too many lines had signs of trouble.
    dropped: int = 0  # Failures in the middle that were not kept.


class Run:
    """What was recorded of one launch, in one folder, or in one folder per host.

    launch: One execution of a job: one command or several that join one rendezvous, with all ranks and their restarts.

    generation: The ranks that a launcher starts together. After a restart, the new ranks are the next generation.
    """

    def __init__(self) -> None:
        self.name = ""
        self.folders: List[str] = []
        self.processes: List[LoggedProcess] = []  # Ranks and solo programs of the last generation, by rank.
        self.earlier: List[LoggedProcess] = []  # Processes of earlier generations.
        self.earlier_generations: List[Run] = []  # The same, one run per generation, oldest first.
        self.others: List[LoggedProcess] = []  # Processes of other launches in these files.
        self.launchers: List[LoggedProcess] = []
        self.deaths: List[Death] = []
        self.failures: List[Failed] = []  # By time; failures from plain logs by line.
        self.texts: List[TextLog] = []
        self.expected: Optional[int] = None  # The expected number of ranks.
        self.elsewhere: List[int] = []  # Ranks of nodes without any file here: they may have written files elsewhere.
        self.not_gathered: List[str] = []  # What gather could not bring from other hosts, and why.
        self.outside: Optional[OutsideEnd] = None  # The signal from outside that ended it, if nothing had failed before.
        self.handled: List[OutsideEnd] = []  # Then also: each rank whose handler made a call for it.
        self.running: Set[int] = set()  # Ranks whose process still runs on this host.
        self.is_newest = False  # No path was given, and this is the newest run.
        self.bundle: Any = None  # The bundle that it was read from; None if it is a run of this host.
        self.read_at = 0.0  # When the files were read, in seconds since 1970.
        self.inventory = Inventory()
        self.facts: Dict[Any, Any] = {}  # Facts about it, by the function that computed them.
        self._ranks: Tuple[List[LoggedProcess], Dict[int, LoggedProcess]] = ([], {})
        self._deaths: Tuple[List[Death], Dict[Optional[int], Death]] = ([], {})

    def __repr__(self) -> str:
        """Say which run it is, and how much of it was read."""
        return "<Run %r: %d of %s ranks, %d files>" % (self.name, len(self.ranks), self.expected or "unknown", len(self.inventory.files))

    def __getstate__(self) -> Dict[str, Any]:
        """Leave out the computed facts: they are computed again."""
        return {**self.__dict__, "facts": {}}

    @property
    def ranks(self) -> Dict[int, LoggedProcess]:
        """Return the processes that have a rank, by rank."""
        if self._ranks[0] is not self.processes:  # Built once per list: rules look up each of ten thousand ranks.
            self._ranks = (self.processes, {process.rank: process for process in self.processes if process.rank is not None})
        return self._ranks[1]

    def stands_until(self, process: LoggedProcess) -> Optional[float]:
        """Return until when a process is known to have gone on: it still runs, or did so until a signal from outside came; else None."""
        if process.rank in self.running:
            return self.read_at
        return process.stood_until + process.offset if process.stood_until is not None else None

    def waited_in(self, process: LoggedProcess, call: "LoggedCall[Any]") -> float:
        """Return for how many seconds a process has been in a call that had not ended when the process was last known to go on; 0 if it had."""
        until = self.stands_until(process)
        if until is None and process.end is None and self.death(process.rank if process.rank is not None else -1) is None:
            until = process.last_when  # It is gone without a word, so it was there at least until its last one.
        return until - call.when if until is not None and (call.open or (call.until is not None and call.until > until)) else 0.0

    @property
    def missing(self) -> List[int]:
        """Return the expected ranks without a file, except those of nodes without any file here."""
        return sorted(set(range(self.expected)) - set(self.ranks) - set(self.elsewhere)) if self.expected else []

    @property
    def astray(self) -> List[int]:
        """Return the missing ranks that did write a file, according to their launcher: it was not copied, or was removed."""
        processes = {(process.host, process.pid) for process in self.processes}
        ranks = []
        by_host: Dict[str, List[Death]] = {}
        for death in self.deaths:
            by_host.setdefault(death.host, []).append(death)
        for launcher in self.launchers:
            if not isinstance(launcher.end, schema.LauncherEnd):
                continue
            children = [death for death in by_host.get(launcher.host, ()) if death.pid is not None]
            # If a shell starts each rank, the pids do not match.
            if any((death.host, death.pid) in processes for death in children):
                ranks += [death.rank for death in children if death.rank is not None and death.local_rank not in launcher.end.silent_ranks]
        return sorted(set(ranks).intersection(self.missing))

    @property
    def whole(self) -> bool:
        """Return whether no rank's file and no line of one is known to be missing."""
        return not self.missing and not any(process.holes for process in self.processes)

    def death(self, rank: int) -> Optional[Death]:
        """Return how a rank ended according to its launcher, with or without a file."""
        if self._deaths[0] is not self.deaths:
            self._deaths = (self.deaths, {death.rank: death for death in reversed(self.deaths)})
        return self._deaths[1].get(rank)
