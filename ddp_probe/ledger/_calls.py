"""The hot path of the ledger: what runs before and after each collective. 3 microseconds for both together, so it is written flat, in closures.

Nothing here allocates in the file, asks the kernel, waits for a lock or keeps an argument, once a line, a group and a data type have been met.
"""

import itertools
import sys
import threading
import time
from typing import Any, Callable, Dict, Tuple

from ddp_probe import ledger_schema as schema
from ddp_probe.ledger._groups import Groups, Known
from ddp_probe.ledger._sites import finder
from ddp_probe.ledger._sums import Sums
from ddp_probe.ours import ours
from ddp_probe.patching import Switch
from ddp_probe.patching.guard import FRAGILE, guard
from ddp_probe.patching.intercept.code_swap import Hooks
from ddp_probe.record.ledger import PLACES, LedgerFile, word

_MOST = 1 << 31
_ROOTED = ("gather", "scatter", "broadcast_object_list", "gather_object", "scatter_object_list")


class _Thread:
    """What a thread is inside of: the index of the outermost open call, and how many calls that one has made."""

    __slots__ = ("flags", "inner", "latest", "outer")

    def __init__(self) -> None:
        self.flags = flags_of_thread()
        self.inner = 0
        self.outer = 0
        self.latest = 0  # where its latest record is, in words


class _Here(threading.local):
    def __init__(self) -> None:
        self.thread = _Thread()


def flags_of_thread() -> int:
    """Return the flags that tell of the thread alone."""
    return 0 if threading.current_thread() is threading.main_thread() else schema.SIDE_THREAD


def hooks(  # noqa: C901, PLR0915  # One flat piece: a call within it would cost as much as what it does.
    file: LedgerFile, switch: Switch, groups: Groups, issued: Callable[[int, int, Any, Any], bool], sums: Sums
) -> Tuple[Hooks, Hooks]:
    """Return what watches a call of torch.distributed, and what watches one that makes or ends groups.

    `issued` is told of work that a call has returned, with its row of the sums, and says whether somebody will wait for it.
    """
    describe = _describer()
    plain_types = _tensor_types()
    modes = getattr(sys.modules.get("torch._C"), "_len_torch_function_stack", None) or int  # int() is 0: torch before 2.0 has no modes
    dtypes, devices = _Texts(file, schema.DTYPE), _Texts(file, schema.DEVICE)
    site = finder(file)
    layout = schema.layout(schema.RECORD)
    pack, size, start, mask = layout.pack_into, layout.size, PLACES.records, schema.RECORDS - 1
    left = schema.offset(schema.RECORD, "left") // 8
    mapped, words, moved = file.map, file.words, word("moved_ns")
    clock, here, by_id = time.monotonic_ns, _Here(), groups.by_id
    rows, add = sums.rows, sums.add
    number: Callable[[], int] = itertools.count(1).__next__
    about_groups: Callable[[], int] = itertools.count(1).__next__

    def begin(op: int, payload: Any, peer: Any, group_peer: Any, group: Any, is_async: Any) -> Any:  # noqa: C901, PLR0912  # The same.
        if not switch.on:
            return None
        index = at = 0
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
            elif type(payload) in plain_types and not modes():
                count, tensors, dtype, device = payload.numel(), 1, dtypes[payload.dtype], devices[payload.device]
            else:
                count, tensors, dtype, device = describe(payload, dtypes, devices)
            peer = _peer(peer, group_peer, known) if peer is not None or group_peer is not None or op in _ROOT_0 else -1
            outer, flags = thread.outer, thread.flags
            if is_async:
                flags |= 1
            if outer:
                thread.inner = seq = thread.inner + 1
                flags |= 2
            elif op < 200:
                seq = known.next()
            else:
                seq = _seq(op, peer, known, about_groups)
            line = site()
            index = number()
            at = start + (index & mask) * size
            thread.latest = at >> 3
            pack(mapped, at, index, now, 0, 0, seq, count, outer, known.number, line, peer, tensors, op, dtype, device, flags, index)
            words[moved] = now
            key = op, known.number, line
            row = None if outer or op >= 300 else rows.get(key) or add(key)
            if op < 400:
                thread.outer = outer or index
                if not outer:
                    thread.inner = 0
            return index, at >> 3, outer, thread, is_async and not outer, row, now
        except RecursionError:  # The job has filled the stack; up to Python 3.9 it must not be swallowed, see the guard.
            if not FRAGILE:
                return None
            raise
        except ours(Exception) as exc:
            broken(switch, exc)
            return None
        except BaseException:  # a signal handler of the job's, in the middle of us: the call is not made
            if at:
                words[(at >> 3) + left] = now << 2 | 2
                thread.outer = outer
            raise

    def end(token: Any, result: Any) -> None:
        if token is None or not switch.on:
            return
        try:
            index, at, outer, thread, is_async, row, entered = token
            thread.outer = outer
            now = clock()
            if words[at] == index:
                words[at + left] = now << 2 if is_async and issued(index, at, result, row) else now << 2 | 1
            words[moved] = now
            if row is not None:  # Sums: calls, inside, longest, entered.
                row[0] += 1
                row[3] += entered
                if not is_async:
                    now -= entered
                    row[1] += now
                    if now > row[2]:  # noqa: PLR1730  # max() costs three times as much.
                        row[2] = now
        except ours(Exception) as exc:
            broken(switch, exc)

    def failed(token: Any) -> None:
        if not switch.on:
            return
        try:
            if token is None:  # A signal handler of the job's has raised between begin and its caller.
                thread = here.thread
                token = words[thread.latest], thread.latest, 0, thread, False, None, 0
                if not thread.latest or words[thread.latest + left]:
                    return
            index, at, outer, thread, _, _, _ = token
            thread.outer = outer
            now = clock()
            if words[at] == index:
                words[at + left] = now << 2 | 2
            words[moved] = now
        except ours(Exception) as exc:
            broken(switch, exc)

    def begin_about_groups(op: int, payload: Any, peer: Any, group_peer: Any, group: Any, is_async: Any) -> Any:
        if switch.on:
            guard.run("ledger", groups.look)
        return begin(op, payload, peer, group_peer, group, is_async)

    def end_about_groups(token: Any, result: Any) -> None:
        end(token, result)
        if switch.on:
            guard.run("ledger", groups.look)

    return Hooks(begin, end, failed), Hooks(begin_about_groups, end_about_groups, failed)


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


def _peer(peer: Any, group_peer: Any, known: Known) -> int:
    """Return the global rank; torch from 2.6 on also takes the rank in the group, and rank 0 if it is given neither."""
    if peer is None and group_peer is None:
        return 0
    if type(peer) is int:
        return peer if -1 <= peer < _MOST else -1
    if type(group_peer) is int and 0 <= group_peer < len(known.ranks):
        return known.ranks[group_peer]
    return -1


def _seq(op: int, peer: int, known: Known, about_groups: Callable[[], int]) -> int:
    if op >= schema.BATCH:
        return 0
    if op >= schema.ABOUT_GROUPS:
        return about_groups()
    key = (peer, op in _SENDS)
    counter = known.peers.get(key)
    if counter is None:
        counter = known.peers.setdefault(key, itertools.count(1).__next__)
    return int(counter())


# Their default is rank 0, which torch from 2.6 on writes as None.
_ROOT_0 = frozenset(code.code for code in schema.OPERATIONS if code.name in _ROOTED)
_SENDS = frozenset(code.code for code in schema.OPERATIONS if code.name in schema.SENDS)


def _tensor_types() -> Any:
    """Return the types whose attributes torch itself answers."""
    torch: Any = sys.modules["torch"]
    return frozenset((torch.Tensor, torch.nn.Parameter))


def _describer() -> Callable[..., Tuple[int, int, int, int]]:
    """Return what describes lists, subclasses and tensors under a mode: none of the job's own code runs for it."""
    torch: Any = sys.modules["torch"]
    without_theirs: Any = torch._C.DisableTorchFunction

    def describe(payload: Any, dtypes: Dict[Any, int], devices: Dict[Any, int]) -> Tuple[int, int, int, int]:
        tensors = 1
        for _ in range(2):  # a list, or one list for each card of the process
            if type(payload) not in (list, tuple):
                break
            tensors = len(payload)
            payload = payload[0] if payload else None
        if not issubclass(type(payload), torch.Tensor):
            return 0, 0, 0, 0
        with without_theirs():
            return int(payload.numel()), tensors, dtypes[payload.dtype], devices[payload.device]

    return describe


def broken(switch: Switch, exc: Exception) -> None:
    """Count a fault of ours, tell it, and write no further record."""
    switch.on = False
    guard.run("ledger", _again, exc)


def _again(exc: Exception) -> None:
    raise exc
