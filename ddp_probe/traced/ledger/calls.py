"""The hot path of the ledger: what runs before and after each collective. 2 to 3 microseconds for both, so it is written flat, in closures."""

import itertools
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import HEADER, PLACES, RECORD
from ddp_probe.shared.ours import must_pass, ours
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.traced.ledger.groups import Groups, Known, Numbers, Row, Sums, count_call, raised_bar
from ddp_probe.traced.ledger.sites import ITEM_BITS, LINE, SIGNAL, finder
from ddp_probe.traced.patching import Switch
from ddp_probe.traced.patching.code_swap import Hooks
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.record.ledger_memory import LedgerFile

CALL = 0
"""What an outermost call of torch.distributed is among the frames; a phase is its code."""


class LedgerThread:
    """One thread: the index of its outermost open call, how many calls it has made, and how long the thread has been in calls altogether."""

    __slots__ = ("flags", "inner", "latest", "outer", "waited")

    def __init__(self) -> None:
        self.flags = 0 if threading.current_thread() is threading.main_thread() else schema.SIDE_THREAD
        self.inner = 0
        self.outer = 0
        self.latest = 0  # where its latest record is, in words
        self.waited = 0


class Here(threading.local):
    """The thread that asks."""

    def __init__(self) -> None:
        self.thread = LedgerThread()


class Frames:
    """The code whose frames are there as long as a call or a phase is open."""

    def __init__(self) -> None:
        self._kinds: Dict[int, int] = {}  # by id(code)
        self._kept: List[CodeType] = []  # so that no other code gets its id

    def know(self, code: Optional[CodeType], kind: Optional[int]) -> None:
        """Take note of what the frames of a code stand for."""
        if code is not None and kind is not None:
            self._kept.append(code)
            self._kinds[id(code)] = kind

    def around(self, frame: Optional[FrameType], kind: int, most: int = 1) -> int:
        """Return how many frames from this one outwards are of this kind, up to a number."""
        found = 0
        while frame is not None and found < most:
            found += self._kinds.get(id(frame.f_code)) == kind
            frame = frame.f_back
        return found


# Nothing here allocates in the file, asks the kernel, waits for a lock or keeps an argument, once a line, a group and a data type have been met.

_MOST = 1 << 31
_bases, _contents = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__  # A metaclass may answer for them.
_NO_DEFAULT = ("broadcast", "reduce", "broadcast_multigpu", "reduce_multigpu")
"""The operations that have to be told their root."""
NO_PEER = False
"""What `begin` is given in place of a peer or a root if the operation has none."""


def hooks(  # noqa: C901, PLR0915  # One flat piece: a call within it would cost as much as what it does.
    file: LedgerFile,
    switch: Switch,
    groups: Groups,
    sums: Sums,
    here: Here,
    frames: Frames,
    issued: Callable[[int, int, Any, Any], bool],
    slow: Callable[[int, int, int], None],
    raised: Callable[[int, int, int], None],
) -> Tuple[Hooks, Hooks]:
    """Return what watches a call of torch.distributed, and what watches a call that makes or ends groups.

    `issued` is told of work that a call has returned, with its row of the sums, and says whether somebody will wait for it.
    `slow` and `raised` are told where the record of a call is, which number it has, and how long the call took.
    An exception of a signal handler may come after any instruction. A record and its number are there together or not at all; what else is
    left half done the next call or `error` puts right, by what is on the stack.
    """
    describe = _describer()
    torch: Any = sys.modules["torch"]
    plain, parameter = torch.Tensor, torch.nn.Parameter  # torch itself answers for their attributes.
    modes = getattr(sys.modules.get("torch._C"), "_len_torch_function_stack", None) or int  # int() is 0: torch before 2.0 has no modes
    dtypes, devices = _Texts(file, schema.DTYPE), _Texts(file, schema.DEVICE)
    place_of = finder(file, with_items=True)
    pack, size, start, mask = RECORD.pack_into, RECORD.size, PLACES.records, schema.RECORDS - 1
    left = RECORD.word("left")
    mapped, words, moved = file.map, file.words, HEADER.word("moved_ns")
    clock, by_id, frame_of = time.monotonic_ns, groups.by_id, sys._getframe
    number: Callable[[], int] = itertools.count(1).__next__
    about_groups = Numbers()

    def begin(op: int, payload: Any, peer: Any, group_peer: Any, group: Any, is_async: Any, depth: int = 1) -> Any:  # noqa: C901, PLR0912, PLR0915  # The same.
        if not switch.on:
            return None
        index = outer = seq = item = 0
        thread = numbers = None
        try:
            now = clock()
            thread = here.thread
            if group is None:
                known = groups.default or groups.find(None)
            else:
                found = by_id.get(id(group))
                known = found if found is not None and found.ref() is group else groups.find(group)
            if payload is None:
                count = tensors = dtype = device = 0
            elif (type(payload) is plain or type(payload) is parameter) and not modes():
                count, tensors, dtype, device = payload.numel(), 1, dtypes[payload.dtype], devices[payload.device]
            else:
                count, tensors, dtype, device = describe(payload, dtypes, devices)
            peer = -1 if peer is NO_PEER else _peer(op, peer, group_peer, known)
            line, way = place_of()
            flags = thread.flags
            if line > LINE:
                item = line >> ITEM_BITS
                flags |= (line >> 32 & SIGNAL) << schema.SIGNAL_BITS
                line &= LINE
            if is_async is not False and is_async is not None:
                if is_async is not True:  # It is not ours to ask what the truth of it is.
                    is_async = type(is_async) is int and is_async != 0
                if is_async:
                    flags |= 1
            outer = thread.outer
            if outer and not frames.around(frame_of(depth).f_back, CALL):
                tidy(thread, 0)
                outer = thread.outer
            if outer:
                seq = thread.inner + 1
                flags |= 2
                row = None
            elif op < 200:
                row = known.rows.get(line)
                if row is None or row[1] != op:
                    row = row_of(op, known, line)
                numbers = known.calls
                seq = numbers.next()
            elif op < 400:
                row = row_of(op, known, line) if op < 300 else None
                numbers = about_groups if op >= 300 else _of_pair(op, peer, known)
                seq = numbers.next()
            else:
                row = None
            index = number()
            at = start + (index & mask) * size
            pack(mapped, at, index, now, 0, 0, seq, count, outer, known.number, way, line, item, peer, tensors, op, dtype, device, flags, index)
            at >>= 3
            thread.latest = at
            if outer:
                thread.inner = seq
            elif numbers is not None:
                numbers.used = seq
                thread.inner = 0
                thread.outer = index
            words[moved] = now
            return index, at, outer, thread, is_async and not outer, row, now
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                unmade(thread, index, outer, numbers, seq)
                raise
            return None
        except ours(Exception) as exc:
            broken(switch, exc)
            return None
        except BaseException:  # a signal handler of the job's, in the middle of us: the call is not made
            unmade(thread, index, outer, numbers, seq)
            raise

    def row_of(op: int, known: Known, line: int) -> Row:
        row = known.rows[line] = sums.row(op, known.number, line)
        return row

    def unmade(thread: Any, index: int, outer: int, numbers: Any, seq: int) -> None:
        if index and words[place(index)] == index:
            shut(place(index))
            thread.outer = outer
            if numbers is not None:
                numbers.used = seq
            else:
                thread.inner = seq
        elif numbers is not None:
            numbers.back()

    def tidy(thread: LedgerThread, around: int) -> None:
        """Close what an exception has left open. `around` is how many calls, up to two, contain the caller."""
        outermost = place(thread.outer)
        if around < 2 and not (around and thread.latest == outermost):
            shut(thread.latest)
        if not around:
            if words[outermost] == thread.outer:
                shut(outermost)
            thread.outer = 0

    def place(index: int) -> int:
        return start + (index & mask) * size >> 3

    def shut(at: int) -> None:
        if at and words[at] and not words[at + left]:
            words[at + left] = clock() << 2 | 2

    def end(token: Any, result: Any) -> None:  # noqa: C901  # The same.
        if token is None or not switch.on:
            return
        try:
            index, at, outer, thread, is_async, row, entered = token
            now = clock()
            if words[at] == index:
                words[at + left] = now << 2 if is_async and issued(index, at, result, row) else now << 2 | 1
            words[moved] = now
            if row is not None:
                calls, inside, bar, began, _ = row[0]  # As in count_call.
                if is_async:
                    row[0] = calls + 1, inside, bar, began + entered, index
                else:
                    now -= entered
                    if now > bar:
                        bar = raised_bar(row, now)
                        if now > row[3]:
                            guard.run("collectives", slow, at, index, now)
                    row[0] = calls + 1, inside + now, bar, began + entered, index
                    thread.waited += now
            thread.outer = outer
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
        except ours(Exception) as exc:
            broken(switch, exc)

    def error(token: Any, depth: int = 2) -> None:
        if not switch.on:
            return
        try:
            thread, row = here.thread, None
            if token is not None:
                index, at, outer, thread, is_async, row, entered = token
                if words[at] == index:
                    if row is not None and words[at + left] and row[0][4] != index:  # It has returned, and was about to be counted.
                        count_call(row, index, entered, 0 if is_async else (words[at + left] >> 2) - entered)
                    shut(at)
                thread.outer = outer
            words[moved] = now = clock()
            tidy(thread, frames.around(frame_of(depth).f_back, CALL, 2))
            if row is not None:
                guard.run("collectives", raised, at, index, now - entered)
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
        except ours(Exception) as exc:
            broken(switch, exc)

    def begin_about_groups(op: int, payload: Any, peer: Any, group_peer: Any, group: Any, is_async: Any) -> Any:
        if switch.on:
            guard.run("ledger", groups.look)
        return begin(op, payload, peer, group_peer, group, is_async, 2)

    def end_about_groups(token: Any, result: Any) -> None:
        end(token, result)
        if switch.on:
            guard.run("ledger", groups.look)

    return Hooks(begin, end, error), Hooks(begin_about_groups, end_about_groups, error)


class _Texts(Dict[Any, int]):
    """Data types or devices by number, written when they are first met."""

    def __init__(self, file: LedgerFile, kind: int) -> None:
        super().__init__()
        self._file = file
        self._kind = kind

    def __missing__(self, key: Any) -> int:
        number = self._file.text(self._kind, str(key).replace("torch.", "")[:100])
        self[key] = number
        return number


def _peer(op: int, peer: Any, group_peer: Any, known: Known) -> int:
    """Return the global rank; torch from 2.6 on also takes the rank in the group, and for some roots rank 0 if it is given neither."""
    if peer is None and group_peer is None:
        return 0 if op in _ROOT_0 else -1
    if type(peer) is int:
        return peer if -1 <= peer < _MOST else -1
    if type(group_peer) is int and 0 <= group_peer < len(known.ranks):
        return known.ranks[group_peer]
    return -1


def _of_pair(op: int, peer: int, known: Known) -> Numbers:
    key = (peer, op in _SENDS)
    return known.peers.get(key) or known.peers.setdefault(key, Numbers())


_WITH_ROOT_0 = schema.ROOTED.difference(_NO_DEFAULT)
_ROOT_0 = frozenset(code.code for code in schema.OPERATIONS if code.name in _WITH_ROOT_0)
_SENDS = frozenset(code.code for code in schema.OPERATIONS if code.name in schema.SENDS)


def _describer() -> Callable[..., Tuple[int, int, int, int]]:
    """Return what describes lists, subclasses and tensors under a mode: none of the job's code runs for it."""
    torch: Any = sys.modules["torch"]
    without_theirs: Any = torch._C.DisableTorchFunction
    base: Any = torch.Tensor.__base__  # A subclass may have methods and properties of these names.
    numel, dtype, device = base.numel, base.dtype.__get__, base.device.__get__

    def answers_by_itself(kind: Any) -> bool:
        """Tell whether torch may ask the class for sizes and devices, in C++."""
        answering = [base for base in _bases(kind) if "__torch_dispatch__" in _contents(base)]
        for base in answering:  # noqa: SIM110  # No generator, in which a handler may raise.
            if not str(_contents(base).get("__module__")).startswith("torch"):
                return True
        return False

    def describe(payload: Any, dtypes: Dict[Any, int], devices: Dict[Any, int]) -> Tuple[int, int, int, int]:
        tensors = 1
        for _ in range(2):  # a list, or one list for each card of the process
            if type(payload) not in (list, tuple):
                break
            tensors = len(payload)
            payload = payload[0] if payload else None
        if not issubclass(type(payload), torch.Tensor) or answers_by_itself(type(payload)):
            return 0, 0, 0, 0
        with without_theirs():
            return int(numel(payload)), tensors, dtypes[dtype(payload)], devices[device(payload)]

    return describe


def broken(switch: Switch, exc: Exception) -> None:
    """Count a fault of ours, tell it, and write no further record."""
    switch.on = False
    guard.run("ledger", _again, exc)


def _again(exc: Exception) -> None:
    raise exc
