"""Reads a rank's ledger: bytes in, header, texts, phases and records out, however the file was left and while it is being written.

A record is believed if its first and last field agree on a number that belongs into its place of the ring. While the process lives, its last field
must have been there in an earlier reading too: the writer stores in the order in which a reader copies, and may overtake it inside a record.
"""

import json
import os
from functools import lru_cache
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.reading import ledger_file, steps
from ddp_probe.reading.steps import StepTimes
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.regular_files import open_unbuffered

_PAGE = 1 << 12
_STEP = schema.layout(schema.STEP).size
_CALLS = [field.name for field in schema.SUM].index("calls")
_STATES = schema.names(schema.STATES)
_OPERATIONS = schema.names(schema.OPERATIONS)
_PHASES = schema.names(schema.PHASES)
_GROUP = [field.name for field in schema.RECORD].index("group")
_COUNTS = {"record": "records", "pass": "passes"}
settled = ledger_file.settled
_layout = lru_cache(maxsize=16)(schema.layout)


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


class Phase(NamedTuple):
    """One kind of phase: how often it was entered, and the latest time."""

    name: str
    times: int
    entered_ns: int
    left_ns: int
    state: str
    site: Optional[LedgerSite]
    in_side_thread: bool

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
        return Ledger(name, problem="The file cannot be read: %s." % (exc.strerror or type(exc).__name__))
    return parse(reading.data, name, reading.before, last, reading.left_out)


def moved_ns(path: Union[str, "os.PathLike[str]"]) -> int:
    """Return when the process last wrote, from eight bytes of the file; 0 if that is unknown."""
    at = schema.offset(schema.HEADER, "moved_ns")
    try:
        with open_unbuffered(path) as file:
            start = file.read(16)
            file.seek(at)
            word = file.read(8)
    except OSError:
        return 0
    order = _byte_order(start)
    return int.from_bytes(word, "big" if order == ">" else "little") if order and len(word) == 8 else 0


def parse(data: bytes, path: str = "", before: Optional[bytes] = None, last: int = 0, left_out: int = 0) -> Ledger:
    """Return what the bytes hold; `before` is an earlier reading of a file that has changed in between, `left_out` what was never written."""
    ledger, texts, rows = parse_rows(data, path, before, left_out)
    return ledger._replace(records=[_record(row, texts) for row in rows[-last:]])


def parse_rows(
    data: bytes, path: str = "", before: Optional[bytes] = None, left_out: int = 0, most_steps: int = schema.STEPS
) -> Tuple[Ledger, Dict[int, Any], List[Tuple[Any, ...]]]:
    """Return a ledger without its records, its texts by number, and its records as rows of numbers."""
    try:
        if ledger_file.is_text(data):
            data, before = ledger_file.of_lines(data), None
    except ValueError as exc:
        return Ledger(path, problem=str(exc)), {}, []
    order = _byte_order(data)
    if not order:
        return Ledger(path, problem="This is not a ledger of ddp_probe." if data[:8].strip(b"\0") else "The file is empty."), {}, []
    if len(data) < _layout(schema.HEADER, order).size:
        return Ledger(path, problem="The file ends inside its header."), {}, []
    raw = _Raw(data, order, before)
    version = raw.head["version"]
    if version not in schema.READS:
        problem = "The ledger is of version %d; this ddp_probe reads versions up to %d." % (version, schema.VERSION)
        return Ledger(path, raw.header({}), problem=problem), {}, []
    texts = dict(raw.texts())
    rows, torn = raw.records()
    groups = [group for group in texts.values() if isinstance(group, Group)]
    passes = raw.passes(texts)
    missing = raw.at.end - len(data) - left_out
    problem = "The last %d bytes of the file are missing." % missing if missing > 0 else ""
    sums, times = list(raw.sums(texts)), raw.steps(most_steps)
    return Ledger(path, raw.header(texts), groups, list(raw.phases(texts)), [], torn, problem, sums, times, passes), texts, rows


def _byte_order(data: bytes) -> str:
    """Return < or >, as the writer's mark says; empty if this is not a ledger."""
    at = schema.offset(schema.HEADER, "byte_order")
    mark = data[at : at + 4]
    if data[:8] != schema.MAGIC or len(mark) < 4:
        return ""
    return {schema.BYTE_ORDER.to_bytes(4, "little"): "<", schema.BYTE_ORDER.to_bytes(4, "big"): ">"}.get(mark, "")


class _Raw:
    """The areas of one file, by field; nothing is taken for true that lies outside the bytes that are there."""

    def __init__(self, data: bytes, order: str, before: Optional[bytes]) -> None:
        self.data = data
        self.order = order
        self.before = before
        self._used = _used(data)  # Most rings are not full: what was never written is not looked at.
        self.head = ledger_file.named(schema.HEADER, _layout(schema.HEADER, order).unpack_from(data))
        self.at = schema.places(self.head)

    def header(self, texts: Dict[int, Any]) -> Header:
        head = self.head
        host = next((text for text in texts.values() if isinstance(text, _Host)), "")
        plain = {name: head[name] for name in Header._fields if name in head}
        return Header(**dict(plain, boot=_boot(head["boot"]), host=str(host)))

    def texts(self) -> Iterator[Tuple[int, Any]]:
        entry, at = _layout(schema.TEXT, self.order), self.head["header_size"]
        end = min(at + min(self.head["text_used"], self.head["text_size"]), len(self.data))
        while at + entry.size <= end:
            size, kind, number = entry.unpack_from(self.data, at)
            at += entry.size
            if at + size > end:
                return
            yield number, _text(kind, self.data[at : at + size])
            at += -(-size // 8) * 8

    def records(self) -> Tuple[List[Tuple[Any, ...]], int]:
        """Return the whole records in order, and how many places of the ring hold another thing."""
        rows, torn = self._ring(schema.record_fields(self.head["version"]), self.at.records, "record")
        return [_of_today(row) for row in rows] if self.head["version"] < schema.VERSION else rows, torn

    def _ring(self, fields: Sequence[schema.Field], start: int, area: str) -> Tuple[List[Tuple[Any, ...]], int]:
        """Return the whole rows of a ring in order, and how many places hold another thing."""
        rows, torn, size, count = [], 0, self.head[area + "_size"], self.head[_COUNTS[area]]
        for place, row in enumerate(self._rows(fields, start, size, count)):
            number = row[0]
            if number != row[-1] or (number and number % count != place):
                torn += self._settled(fields, start, size, place)
            elif number and (self.before is None or self._settled(fields, start, size, place)):
                rows.append(row)
        return sorted(rows), torn

    def passes(self, texts: Dict[int, Any]) -> List[Record]:
        """Return the passes in order; what is torn is left out."""
        rows, _ = self._ring(schema.PASS, self.at.passes, "pass")
        return [_pass(row, texts) for row in rows]

    def phases(self, texts: Dict[int, Any]) -> Iterator[Phase]:
        known = _PHASES
        for place, values in enumerate(self._rows(schema.PHASE, self.at.phases, self.head["phase_size"], self.head["phases"])):
            if 0 != values[0] == values[-1] and self._settled(schema.PHASE, self.at.phases, self.head["phase_size"], place):
                row = ledger_file.named(schema.PHASE, values)
                site = texts.get(row["site"])
                yield Phase(
                    known.get(place + 1, "phase %d" % (place + 1)),
                    row["count"],
                    row["entered_ns"],
                    row["left"] >> 2,
                    _STATES[row["left"] & 3],
                    site if isinstance(site, LedgerSite) else None,
                    bool(row["flags"] & schema.SIDE_THREAD),
                )

    def sums(self, texts: Dict[int, Any]) -> Iterator[CallSum]:
        for row in self._rows(schema.SUM, self.at.sums, self.head["sum_size"], self.head["sums"]):
            if row[_CALLS]:
                op, group, site, _, calls, *times = row
                described, line = texts.get(group), texts.get(site)
                yield CallSum(
                    _OPERATIONS.get(op, "operation %d" % op) if op else "",
                    described if isinstance(described, Group) else None,
                    line if isinstance(line, LedgerSite) else None,
                    calls,
                    *times,
                )

    def steps(self, most: int) -> StepTimes:
        area = self.data[self.at.steps : self.at.passes]
        return steps.read(area, self.order, most) if self.head["step_size"] == _STEP else StepTimes()

    def _rows(self, fields: Sequence[schema.Field], start: int, size: int, count: int) -> Iterable[Tuple[Any, ...]]:
        """Return the rows of an area that are there, without those at its end that were never written."""
        layout = _layout(fields, self.order)
        if size < layout.size:
            return ()
        there = max(0, min(count, (len(self.data) - start) // size, -(-(self._used - start) // size)))
        if size == layout.size:
            return layout.iter_unpack(memoryview(self.data)[start : start + there * size])
        return (layout.unpack_from(self.data, start + place * size) for place in range(there))

    def _settled(self, fields: Sequence[schema.Field], start: int, size: int, place: int) -> bool:
        """Tell whether a row was complete in the earlier reading."""
        end = start + place * size + _layout(fields, self.order).size
        return self.before is None or self.before[end - 8 : end] == self.data[end - 8 : end]


def _used(data: bytes) -> int:
    """Return from where on all bytes are zero, or somewhat later; several times as fast as bytes.rstrip."""
    low, high = 0, len(data)
    while high - low > _PAGE:
        middle = (low + high) // 2
        if data.startswith(bytes(high - middle), middle):
            high = middle
        else:
            low = middle
    return high


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


def _of_today(row: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Return a record of version 1 or 2 with the fields of today."""
    return (*row[:_GROUP], row[_GROUP], 0, row[_GROUP + 1], 0, *row[_GROUP + 2 :])


def _pass(row: Tuple[Any, ...], texts: Dict[int, Any]) -> Record:
    number, entered, left, count, phase, way, site, flags, _ = row
    line = texts.get(site)
    return Record(
        number=number,
        op=_PHASES.get(phase, "phase %d" % phase),
        group=None,
        seq=count,
        peer=-1,
        elements=0,
        tensors=0,
        dtype="",
        device="",
        site=line if isinstance(line, LedgerSite) else None,
        entered_ns=entered,
        waited_ns=0,
        left_ns=left >> 2,
        state=_STATES[left & 3],
        outer=0,
        is_async=False,
        is_inner=False,
        in_side_thread=bool(flags & schema.SIDE_THREAD),
        way=_way(way, texts),
        is_held_back=bool(flags & schema.HELD_BACK),
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
        file, line, function = [*text.split("\n"), "", ""][:3]
        return LedgerSite(file, int(line) if line.isascii() and line.isdigit() and len(line) < 10 else 0, function)
    if kind == schema.GROUP:
        return _group(text)
    if kind == schema.WAY:
        return _WayNumbers(int(word) for word in text.split() if word.isascii() and word.isdigit() and len(word) < 6)
    return _Host(text) if kind == schema.HOST else text


def _group(text: str) -> Group:
    try:
        decoded = json.loads(text)
        return Group(**{name: decoded[name] for name in Group._fields if name in decoded})
    except (ValueError, TypeError, RecursionError):
        return Group(description=text[:80])


def _plain(text: Any) -> str:
    """Return a text, unless a damaged number names one of another kind."""
    return text if type(text) is str else ""


def _record(row: Tuple[Any, ...], texts: Dict[int, Any]) -> Record:
    number, entered, waited, left, seq, elements, outer, group, way, site, item, peer, tensors, op, dtype, device, flags, _ = row
    described, line = texts.get(group), texts.get(site)
    return Record(
        number,
        _OPERATIONS.get(op, "operation %d" % op),
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
