"""Reads a rank's ledger: bytes in, header, texts, phases and records out, however the file was left and while it is being written.

A record is believed if its first and last field agree on a number that belongs into its place of the ring. While the process lives, its last field
must have been there in an earlier reading too: the writer stores in the order in which a reader copies, and may overtake it inside a record.
"""

import json
import os
from functools import lru_cache
from operator import itemgetter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.reading import ledger_file, steps
from ddp_probe.reading.steps import StepTimes
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import LedgerBytes, NamedRow, Values
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_STATES = schema.names(schema.STATES)
_OPERATIONS = schema.names(schema.OPERATIONS)
_PHASES = schema.names(schema.PHASES)
settled = ledger_file.settled


class Group(NamedTuple):
    """A process group as the process itself saw it. The id is the same on each of its ranks."""

    id: str = ""
    size: int = 0
    ranks: str = ""
    nth: int = 0
    backends: Dict[str, str] = {}
    name: str = ""
    description: str = ""


class LedgerSite(NamedTuple):
    """A line of the job."""

    file: str = ""
    line: int = 0
    function: str = ""
    arm: int = 0  # Of a line with several arms, such as those of a conditional expression: from 1 on.


class Record(NamedTuple):
    """One call of a rank as its ledger holds it; times are on the monotonic clock of the host, 0 for never."""

    number: int
    op: str
    group: Optional[Group]
    seq: int
    peer: int
    elements: int
    tensors: int
    dtype: str
    device: str
    site: Optional[LedgerSite]
    entered_ns: int
    waited_ns: int
    left_ns: int
    state: str
    outer: int
    is_async: bool
    is_inner: bool
    in_side_thread: bool
    signal: int = 0  # The number of the signal whose handler made the call; else 0.
    way: Tuple[LedgerSite, ...] = ()  # The job's lines from the outermost to `site`; empty if they are not known.
    item: int = 0  # What stands for the item at which a loop around the call is; 0 if it is in no loop over names.

    is_held_back: bool = False  # Whether the gradients of a forward pass are not exchanged, as under no_sync().
    has_failed: bool = False  # Whether it is a DataLoader that raised, and not at its end.
    sends_buffers: bool = False  # Whether DDP sends the buffers of the model in a forward pass.
    model: int = 0  # The number of the model of a forward pass in which ranks meet; else 0.

    @property
    def is_open(self) -> bool:
        """Tell whether the call, or the wait for its work, has not come to an end."""
        return self.state == "open"

    @property
    def is_pass(self) -> bool:
        """Tell whether this is a pass through a phase, and not a call; `seq` is how often the phase was entered."""
        return self.op in schema.PHASE_NAMES

    @property
    def is_issued(self) -> bool:
        """Tell whether the call has returned work that is not known to be done."""
        return self.state == "open" and self.left_ns > 0

    @property
    def blocks(self) -> bool:
        """Tell whether the rank cannot go on before this is over: it is in the call, or in the wait() for its work."""
        return self.is_open and (not self.is_issued or self.waited_ns > 0)


class Phase(NamedTuple):
    """One kind of phase: how often it was entered, and the latest time."""

    name: str
    times: int
    entered_ns: int
    left_ns: int
    state: str
    site: Optional[LedgerSite]
    in_side_thread: bool
    has_failed: bool = False  # Whether it is a DataLoader that raised, and not at its end.

    @property
    def is_open(self) -> bool:
        """Tell whether the process is in it."""
        return self.state == "open"


class CallSum(NamedTuple):
    """All calls of one operation in one group at one line of the job; `op` is empty for those that found no room."""

    op: str
    group: Optional[Group]
    site: Optional[LedgerSite]
    calls: int
    inside_ns: int
    longest_ns: int
    entered_ns: int


class Header(NamedTuple):
    """Who wrote the file, when, and how it is laid out."""

    version: int
    rank: int
    world_size: int
    pid: int
    born: int
    boot: str
    wall_ns: int
    mono_ns: int
    moved_ns: int
    closed_ns: int
    text_lost: int
    host: str


class Ledger(NamedTuple):
    """What one file holds. `problem` says in a sentence why something is missing; `torn` counts records that are not believed."""

    path: str
    header: Optional[Header] = None
    groups: List[Group] = []
    phases: List[Phase] = []
    records: List[Record] = []
    torn: int = 0
    problem: str = ""
    sums: List[CallSum] = []
    steps: StepTimes = StepTimes()
    passes: List[Record] = []

    @property
    def sequence(self) -> List[Record]:
        """Return the calls of the job and its passes through phases, in the order in which they began."""
        outer = [record for record in self.records if not record.is_inner]
        return sorted([*outer, *self.passes], key=lambda record: record.entered_ns)


def read(path: Union[str, "os.PathLike[str]"], last: int = 0) -> Ledger:
    """Read a file, whether or not its process is alive; if a number is given, at most this many of the last records."""
    name = os.fspath(path)
    try:
        reading = ledger_file.read(name)
    except OSError as exc:
        reason = quoted(exc.strerror or type(exc).__name__)
        return Ledger(name, problem=say("The file cannot be read: {reason}.", reason=reason))
    return parse(reading.data, name, reading.before, last, reading.left_out)


def parse(data: bytes, path: str = "", before: Optional[bytes] = None, last: int = 0, left_out: int = 0) -> Ledger:
    """Return what the bytes hold; `before` is an earlier reading of a file that has changed in between, `left_out` what was never written."""
    ledger, texts, rows = parse_rows(data, path, before, left_out)
    return ledger._replace(records=[record(row, texts) for row in rows[-last:]])


def parse_rows(
    data: bytes, path: str = "", before: Optional[bytes] = None, left_out: int = 0, most_steps: int = schema.STEPS
) -> Tuple[Ledger, Dict[int, Any], List[Values]]:
    """Return a ledger without its records, its texts by number, and its records as rows of numbers."""
    try:
        if ledger_file.is_text(data):
            data, before = ledger_file.of_lines(data), None
    except ValueError as exc:
        return Ledger(path, problem=exc.args[0]), {}, []
    if not codec.byte_order(data):
        return Ledger(path, problem="This is not a ledger of ddp_probe." if data[:8].strip(b"\0") else "The file is empty."), {}, []
    if len(data) < codec.HEADER.size:
        return Ledger(path, problem="The file ends inside its header."), {}, []
    file = LedgerBytes(data, before)
    version = file.head["version"]
    if version not in schema.READS:
        problem = say(
            "The ledger is of version {version}; this ddp_probe reads versions up to {newest}.",
            version=version,
            newest=schema.VERSION,
        )
        return Ledger(path, _header(file.head, {}), problem=problem), {}, []
    texts = {number: _text(kind, text) for number, kind, text in file.texts()}
    rows, torn = file.ring(schema.RECORD_AREA)
    missing = file.at.end - len(data) - left_out
    ledger = Ledger(
        path,
        _header(file.head, texts),
        groups=[group for group in texts.values() if isinstance(group, Group)],
        phases=[_phase(place, row, texts) for place, row in file.table(schema.PHASE_AREA)],
        torn=torn,
        problem=say("The last {count} bytes of the file are missing.", count=missing) if missing > 0 else "",
        sums=list(_sums(file, texts)),
        steps=steps.read(file, most_steps),
        passes=[_pass(row, texts) for row in file.ring(schema.PASS_AREA)[0]],
    )
    return ledger, texts, rows


def _header(head: NamedRow, texts: Dict[int, Any]) -> Header:
    host = next((text for text in texts.values() if isinstance(text, _Host)), "")
    plain = {name: head[name] for name in Header._fields if name in head}
    return Header(**dict(plain, boot=_boot(head["boot"]), host=str(host)))


def _phase(place: int, row: NamedRow, texts: Dict[int, Any]) -> Phase:
    return Phase(
        name=_PHASES.get(place + 1, "phase %d" % (place + 1)),
        times=row["count"],
        entered_ns=row["entered_ns"],
        left_ns=row["left"] >> 2,
        state=_STATES[row["left"] & 3],
        site=_site(row, texts),
        in_side_thread=bool(row["flags"] & schema.SIDE_THREAD),
        has_failed=bool(row["flags"] & schema.FAILED),
    )


def _sums(file: LedgerBytes, texts: Dict[int, Any]) -> Iterator[CallSum]:
    calls = codec.SUM.position("calls")
    for values in file.rows(schema.SUM_AREA):
        if values[calls]:
            row = codec.SUM.named(values)
            group = texts.get(row["group"])
            yield CallSum(
                op=_OPERATIONS.get(row["op"], "operation %d" % row["op"]) if row["op"] else "",
                group=group if isinstance(group, Group) else None,
                site=_site(row, texts),
                calls=row["calls"],
                inside_ns=row["inside_ns"],
                longest_ns=row["longest_ns"],
                entered_ns=row["entered_ns"],
            )


class _Host(str):
    """The host's name among the texts."""

    __slots__ = ()


class _WayNumbers(Tuple[int, ...]):
    """The numbers of a way's lines among the texts."""

    __slots__ = ()


def _way(number: int, texts: Dict[int, Any]) -> Tuple[LedgerSite, ...]:
    """Return the lines of a way; none if one of them is not there."""
    numbers = texts.get(number)
    if not isinstance(numbers, _WayNumbers):
        return ()
    lines = [texts.get(line) for line in numbers]
    sites = tuple(line for line in lines if isinstance(line, LedgerSite))
    return sites if len(sites) == len(lines) else ()


def _pass(values: Values, texts: Dict[int, Any]) -> Record:
    row = codec.PASS.named(values)
    return Record(
        number=row["index"],
        op=_PHASES.get(row["phase"], "phase %d" % row["phase"]),
        group=None,
        seq=row["count"],
        peer=-1,
        elements=0,
        tensors=0,
        dtype="",
        device="",
        site=_site(row, texts),
        entered_ns=row["entered_ns"],
        waited_ns=0,
        left_ns=row["left"] >> 2,
        state=_STATES[row["left"] & 3],
        outer=0,
        is_async=False,
        is_inner=False,
        in_side_thread=bool(row["flags"] & schema.SIDE_THREAD),
        way=_way(row["way"], texts),
        is_held_back=bool(row["flags"] & schema.HELD_BACK),
        has_failed=bool(row["flags"] & schema.FAILED),
        sends_buffers=bool(row["flags"] & schema.SENDS_BUFFERS),
        model=row["flags"] >> schema.MODEL_BITS,
    )


def _boot(raw: bytes) -> str:
    """Return the kernel's number as /proc prints it."""
    text = raw.hex()
    return "" if not raw.strip(b"\0") else "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@lru_cache(maxsize=1 << 14)
def _text(kind: int, data: bytes) -> Any:
    """Return what a text describes; ten thousand ranks write the same texts."""
    text = data.decode("utf-8", "replace")
    if kind == schema.SITE:
        file, line, function, arm = [*text.split("\n"), "", "", ""][:4]
        return LedgerSite(file, _number(line), function, _number(arm))
    if kind == schema.GROUP:
        return _described(text)
    if kind == schema.WAY:
        return _WayNumbers(int(word) for word in text.split() if word.isascii() and word.isdigit() and len(word) < 6)
    return _Host(text) if kind == schema.HOST else text


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _described(text: str) -> Group:
    try:
        decoded = json.loads(text)
        return Group(**{name: decoded[name] for name in Group._fields if name in decoded})
    except (ValueError, TypeError, RecursionError):
        return Group(description=text[:80])


def _plain(text: Any) -> str:
    """Return a text, unless a damaged number names one of another kind."""
    return text if type(text) is str else ""


def _site(row: NamedRow, texts: Dict[int, Any]) -> Optional[LedgerSite]:
    site = texts.get(row["site"])
    return site if isinstance(site, LedgerSite) else None


_CALL = ("index", "op", "group", "seq", "peer", "elements", "tensors", "dtype", "device")
_COURSE = ("site", "entered_ns", "waited_ns", "left", "outer", "flags", "way", "item")
_call_of, _course_of = (itemgetter(*map(codec.RECORD.position, names)) for names in (_CALL, _COURSE))  # A dict takes several times as long.


def record(values: Values, texts: Dict[int, Any]) -> Record:
    """Return the call that a row of numbers is."""
    number, op, group, seq, peer, elements, tensors, dtype, device = _call_of(values)
    site, entered, waited, left, outer, flags, way, item = _course_of(values)
    described, line = texts.get(group), texts.get(site)
    return Record(
        number,
        _OPERATIONS.get(op) or "operation %d" % op,
        described if isinstance(described, Group) else None,
        seq,
        peer,
        elements,
        tensors,
        _plain(texts.get(dtype)),
        _plain(texts.get(device)),
        line if isinstance(line, LedgerSite) else None,
        entered,
        waited,
        left >> 2,
        _STATES[left & 3],
        outer,
        bool(flags & schema.ASYNC),
        bool(flags & schema.INNER),
        bool(flags & schema.SIDE_THREAD),
        flags >> schema.SIGNAL_BITS,
        _way(way, texts),
        item,
    )
