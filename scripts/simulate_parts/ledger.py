"""The ledger of one simulated rank: the package's own file, its texts written by the package, its records packed by the package's schema.

What a training calls is the same on all ranks: four collectives a step, one of them in the group of the host's ranks.
"""

import itertools
import random
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import HEADER, PHASE, PLACES, RECORD, STEP, SUM
from ddp_probe.traced.ledger import groups
from ddp_probe.traced.record import ledger_memory as writer

from . import launch as of_launch
from .launch import Launch, host_name
from .process import CLOCK

writer.time = CLOCK  # type: ignore[attr-defined]  # what of it the header asks

LEAST = 16
LINE = 57
"""The line at which the ranks meet last."""

_INSIDE = 0.4  # Of the time from one call to the next, the part that a call takes.
_OPERATIONS, _PHASES = schema.codes(schema.OPERATIONS), schema.codes(schema.PHASES)
_LEFT, _WAITED, _MOVED = RECORD.offset("left"), RECORD.offset("waited_ns"), HEADER.word("moved_ns")


class Call(NamedTuple):
    """A call that a rank makes; `own` is in the group of its host."""

    op: str
    elements: int
    line: int
    root: int = -1
    own: bool = False
    is_async: bool = False


ALL_REDUCE = Call("all_reduce", 161, LINE)
_STEP = (
    Call("broadcast", 8, 54, root=0),
    Call("all_gather_into_tensor", 4, 55, own=True),
    Call("all_reduce", 1, 56),
    ALL_REDUCE,
)


class _Open(NamedTuple):
    at: int
    index: int


@lru_cache(maxsize=4)
def _group(ranks: range, number: int, nth: int) -> str:
    """Return the text of the default group, which is number 0, or of a host's."""
    return groups.described(tuple(ranks), nth, {"gcu": "eccl", "cpu": "eccl"}, str(number), "" if number else "default_pg")


class SimulatedLedger:
    """One rank's ledger; times are the launch's."""

    def __init__(self, log: str, launch: Launch, rank: int, jitter: float) -> None:
        host = rank // launch.per_host
        self._file = writer.create(log[: -len(".jsonl")], writer.Author(rank, launch.ranks, 0, "", host_name(host)), in_memory=False)
        HEADER.write_field(self._file.map, 0, "pid", launch.pid(rank))
        groups = ((range(launch.ranks), 0, 1), (launch.ranks_of(host), host + 1, 2 if launch.hosts == 1 else 1))
        self._groups = [self._file.text(schema.GROUP, _group(*group)) for group in groups]
        self._dtype = self._file.text(schema.DTYPE, "float32")
        self._device = self._file.text(schema.DEVICE, "gcu:%d" % (rank % launch.per_host))
        self._start = PLACES.records
        self._same: Dict[Call, Dict[str, int]] = {}
        self._numbers: Dict[int, Any] = {}
        self._index = 0
        self._last: List[_Open] = []
        self._jitter = jitter

    def init(self, began: int) -> None:
        """Write the calls that make the two groups; they end now."""
        self.about_groups("init_process_group", 33, began, known=False)
        self.about_groups("new_group", 34, CLOCK.monotonic_ns())

    def about_groups(self, op: str, line: int, began: int, *, known: bool = True) -> None:
        """Write a call that makes or ends a group, from some time until now; before the first one no group is known."""
        at = self._put(Call(op, 0, line), self._groups[0] if known else 0, began, self._number("about groups"))
        self._leave(at, CLOCK.monotonic_ns(), schema.RETURNED)

    def steps(self, count: int, until: float) -> None:
        """Write calls, one after another, from now to a moment of the launch; all of them return."""
        begin, end = CLOCK.monotonic_ns(), CLOCK.at(until)
        gap = (end - begin) // max(count, 1)
        inside = int(gap * _INSIDE)
        now = begin + int(gap * self._jitter * (1 - _INSIDE))
        entered: Dict[Call, List[int]] = {}
        for call in itertools.islice(itertools.cycle(_STEP), count):
            self._put(call, self._groups[call.own], now, self._number(call.own), now + inside << 2 | schema.RETURNED)
            entered.setdefault(call, []).append(now)
            now += gap
        self._sums(entered, inside)
        self._ring(max(count // len(_STEP), 1), begin, len(_STEP) * gap)
        self._phase("backward", max(count // len(_STEP), 1), end, end)

    def _sums(self, entered: Dict[Call, List[int]], inside: int) -> None:
        """Write the sums of these calls, behind the row of those that find no room."""
        for place, (call, times) in enumerate(entered.items(), 1):
            row = {
                "op": _OPERATIONS[call.op],
                "group": self._groups[call.own],
                "site": self._site(call.line),
                "calls": len(times),
                "inside_ns": inside * len(times),
                "longest_ns": inside,
                "entered_ns": sum(times) % (1 << 64),
            }
            SUM.write(self._file.map, PLACES.sums + place * SUM.size, row)

    def _ring(self, count: int, begin: int, took: int) -> None:
        """Write as many steps, whose forward pass varies by 10 %, and the wait in the backward pass with it."""
        chance = random.Random(self._jitter)  # noqa: S311  # the same launch is written twice alike
        waiting, data, usual = int(took * _INSIDE), took // 40, took // 4
        for number in range(max(2, count - schema.STEPS + 2), count + 1):
            forward = int(usual * chance.uniform(0.9, 1.1))
            ended = begin + number * took
            row = {
                "index": number,
                "began_ns": ended - took,
                "ended_ns": ended,
                "dataloader_ns": data,
                "forward_ns": forward,
                "backward_ns": took - waiting - 2 * data - forward,
                "optimizer_ns": data,
                "waiting_ns": waiting,
                "index_again": number,
            }
            STEP.write(self._file.map, PLACES.steps + number % schema.STEPS * STEP.size, row)

    def begin(self, call: Call) -> int:
        """Write that a call begins now, and that work which is issued at once is not done; return the call's number in its group."""
        now, seq = CLOCK.monotonic_ns(), self._number(call.own)
        self._last.append(_Open(self._put(call, self._groups[call.own], now, seq), self._index))
        if call.is_async:
            self._word(self._last[-1].at + _LEFT, now << 2)
        return seq

    def wait(self) -> None:
        """Write that the rank waits for the work that it issued last."""
        self._word(self._last[-1].at + _WAITED, CLOCK.monotonic_ns())
        self._moved(CLOCK.monotonic_ns())

    def stay_in(self, phase: str, times: int, line: int) -> None:
        """Write that the rank enters a phase now, which it does not leave."""
        self._phase(phase, times, CLOCK.monotonic_ns(), 0, line)

    def give_up(self) -> None:
        """Write that the call which was begun last raises now."""
        self._leave(self._last[-1].at, CLOCK.monotonic_ns(), schema.RAISED)

    def close(self) -> None:
        """Let go of the file as a process that ends does."""
        self._file.close(said=False)

    def _number(self, key: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = itertools.count(1).__next__
        return int(number())

    def _site(self, line: int) -> int:
        return self._file.text(schema.SITE, "%s\n%d\nmain" % (of_launch.SCRIPT, line))

    def _put(self, call: Call, group: int, now: int, seq: int, left: int = 0) -> int:
        """Pack one record into its place in the ring."""
        self._index = index = self._index + 1
        at = self._start + index % schema.RECORDS * RECORD.size
        same = self._same.get(call) or self._describe(call)
        row = {**same, "index": index, "entered_ns": now, "left": left, "seq": seq, "group": group, "index_again": index}
        RECORD.write(self._file.map, at, row)
        self._moved(now)
        return at

    def _describe(self, call: Call) -> Dict[str, int]:
        """Return the fields that are the same in all records of a call."""
        same = {
            "elements": call.elements,
            "site": self._site(call.line),
            "peer": call.root,
            "op": _OPERATIONS[call.op],
            "flags": schema.ASYNC if call.is_async else 0,
        }
        if call.elements:
            same.update(tensors=1, dtype=self._dtype, device=self._device)
        self._same[call] = same
        return same

    def _leave(self, at: int, now: int, state: int) -> None:
        self._word(at + _LEFT, now << 2 | state)
        self._moved(now)

    def _phase(self, name: str, times: int, entered: int, left: int, line: Optional[int] = None) -> None:
        row = {
            "stamp": times,
            "entered_ns": entered,
            "left": left << 2 | schema.RETURNED if left else 0,
            "count": times,
            "site": self._site(line or LINE),
            "stamp_again": times,
        }
        PHASE.write(self._file.map, PLACES.phases + (_PHASES[name] - 1) * PHASE.size, row)
        self._moved(max(entered, left))

    def _word(self, at: int, value: int) -> None:
        self._file.words[at // 8] = value

    def _moved(self, now: int) -> None:
        self._file.words[_MOVED] = now
