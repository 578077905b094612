"""The shapes of a run over time: spans, marks and lanes."""

from typing import Dict, List, NamedTuple, Optional

from ddp_probe.reading.logged_call import LogLine
from ddp_probe.shared.schema import Site

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
    at: Optional[LogLine]  # The line of the log behind it; None for what only the ledger has.
    failed: bool  # It raised an exception.
    guilty: bool  # A finding's evidence points at this line, or a finding names its rank and this is the last thing that the rank did.
    number: int = 0  # Of a collective, its number in its group; of a phase, how often it had been entered; else 0.
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
    spans: List[TimeSpan]  # By their begin.
    begin: float
    end: float
    ending: str  # As the table of ranks has it: "ended", "exit 1", "killed SIGKILL", "running".
    marks: List[Mark] = []  # By time.
    left_out: int = 0  # How many calls of its log and its ledger are not among the spans.
    memory: List[MemoryMark] = []  # By time.


class Timeline(NamedTuple):
    """A run over time."""

    begin: float
    end: float
    lanes: List[Lane]
    shown: int  # How many lanes are kept.
    of: int  # Of how many processes.
