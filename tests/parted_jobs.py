"""Jobs in which one rank skips, repeats or swaps one call, drawn at random; and what each rank then does, by the rules of calls that block."""

import json
import random
from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Tuple


class Call(NamedTuple):
    """One call of one rank: of a group, or with a peer."""

    op: str
    line: int
    group: Tuple[int, ...]
    peer: int = -1


Program = List[List[Call]]


class Job(NamedTuple):
    """What the ranks call, and which one does so wrongly."""

    shape: str
    fault: str
    guilty: int
    step: int
    ranks: int
    program: Program


class Did(NamedTuple):
    """What one rank has called, and whether the last call still waits."""

    calls: List[Call]
    waits: bool


def _all(ranks: int, line: int) -> Call:
    return Call("all_reduce", line, tuple(range(ranks)))


def _pairs(ranks: int) -> Program:
    return [[Call("all_reduce", 20, (rank & ~1, rank | 1))] for rank in range(ranks)]


def _ring(ranks: int) -> Program:
    """Even ranks send first, odd ones receive first."""
    found = []
    for rank in range(ranks):
        after, before = (rank + 1) % ranks, (rank - 1) % ranks
        send, recv = Call("send", 20 + rank % 2 * 4, (), after), Call("recv", 21 + rank % 2 * 2, (), before)
        found.append([recv, send] if rank % 2 else [send, recv])
    return found


def _pipeline(ranks: int, batches: int) -> Program:
    """All batches go forward, then all gradients back."""
    found: Program = []
    for rank in range(ranks):
        first, last = rank == 0, rank == ranks - 1
        forward = [*([] if first else [Call("recv", 20, (), rank - 1)]), *([] if last else [Call("send", 21, (), rank + 1)])]
        back = [*([] if last else [Call("recv", 23, (), rank + 1)]), *([] if first else [Call("send", 24, (), rank - 1)])]
        found.append(forward * batches + back * batches)
    return found


def _grid(rows: int, columns: int) -> Program:
    found = []
    for rank in range(rows * columns):
        row, column = divmod(rank, columns)
        beside = Call("all_reduce", 20, tuple(row * columns + one for one in range(columns)))
        below = Call("all_reduce", 22, tuple(one * columns + column for one in range(rows)))
        found.append([beside, below])
    return found


def draw(dice: random.Random, with_ended: bool = True) -> Job:
    """Draw a job that comes to a stop, in which some ranks may have ended or not."""
    while True:
        job = _drawn(dice)
        waits = [did.waits for did in simulated(job.program)] if job is not None else []
        if job is not None and (any(waits) if with_ended else all(waits)):
            return job


def _drawn(dice: random.Random) -> Optional[Job]:
    shape = dice.choice(("pairs", "ring", "pipeline", "grid"))
    if shape == "grid":
        rows, columns = dice.choice(((2, 2), (2, 3), (3, 2), (4, 2), (2, 4)))
        step, shape = _grid(rows, columns), "grid %dx%d" % (rows, columns)
    elif shape == "pipeline":
        step = _pipeline(4, dice.randint(1, 4))
    else:
        step = (_pairs if shape == "pairs" else _ring)(dice.choice((4, 6, 8)))
    if shape == "pairs" or dice.random() < 0.6:
        step = [[*calls, _all(len(step), 26)] for calls in step]
        shape += " and all"
    steps, ranks = dice.randint(4, 8), len(step)
    guilty, fault = dice.randrange(ranks), dice.choice(("skips", "repeats", "swaps"))
    place = dice.randrange(len(step[guilty]) * steps)
    program = [calls * steps for calls in step]
    wrong = _wrong(program[guilty], fault, place)
    if wrong is None:
        return None
    at, program[guilty] = place // len(step[guilty]), wrong
    return Job(shape, fault, guilty, at, ranks, program)


def _wrong(calls: List[Call], fault: str, place: int) -> Optional[List[Call]]:
    """Return the calls with the fault; None if that changes nothing."""
    if fault == "skips":
        wrong = calls[:place] + calls[place + 1 :]
    elif fault == "repeats":
        wrong = calls[: place + 1] + calls[place:]
    else:
        wrong = calls[:place] + calls[place : place + 2][::-1] + calls[place + 2 :]
    return wrong if wrong != calls else None


def simulated(program: Program) -> List[Did]:
    """Let the ranks call until none can go on. A collective waits for its whole group, a send for its recv and a recv for its send."""
    at = [0] * len(program)
    numbers: List[Counter[object]] = [Counter() for _ in program]
    inside: List[Optional[Tuple[object, Call]]] = [None] * len(program)
    moved = True
    while moved:
        moved = False
        for rank, calls in enumerate(program):
            if inside[rank] is None and at[rank] < len(calls):
                call = calls[at[rank]]
                numbers[rank][_channel(rank, call)] += 1
                inside[rank], moved = ((_channel(rank, call), numbers[rank][_channel(rank, call)]), call), True
        moved = _meet(inside, at) or moved
    return [Did(calls[: done + (now is not None)], now is not None) for calls, done, now in zip(program, at, inside)]


def _meet(inside: List[Optional[Tuple[object, Call]]], at: List[int]) -> bool:
    waiting: Dict[object, List[int]] = {}
    for rank, now in enumerate(inside):
        if now is not None:
            waiting.setdefault(now[0], []).append(rank)
    done = [ranks for (_, ranks) in waiting.items() if len(ranks) == _size(inside[ranks[0]])]
    for ranks in done:
        for rank in ranks:
            inside[rank] = None
            at[rank] += 1
    return bool(done)


def _size(now: Optional[Tuple[object, Call]]) -> int:
    return len(now[1].group) or 2 if now is not None else 0


def _channel(rank: int, call: Call) -> object:
    """Return what a call and its counterpart on another rank have in common, beside its number."""
    if call.peer < 0:
        return call.group
    return (rank, call.peer) if call.op == "send" else (call.peer, rank)


def log(did: List[Did]) -> str:
    """Return the ledgers as text; what has ended says so."""
    lines = ['{"event":"process.start","rank":%d,"world_size":%d}' % (rank, len(did)) for rank in range(len(did))]
    lines += ['{"event":"process.end","rank":%d,"exit_code":0}' % rank for rank, one in enumerate(did) if not one.waits]
    for rank, one in enumerate(did):
        lines += [_line(rank, call, one.waits and place == len(one.calls) - 1) for place, call in enumerate(one.calls)]
    return "\n".join(lines)


def _line(rank: int, call: Call, waits: bool) -> str:
    other = " %s %d" % ("to" if call.op == "send" else "from", call.peer) if call.peer >= 0 else " of %s" % ",".join(map(str, call.group))
    return "ledger %d %s 16 float32%s at /job/train.py:%d%s" % (rank, call.op, other, call.line, " open" if waits else "")


_HEAD = """\
import json, multiprocessing, os, sys
from datetime import timedelta
import torch
import torch.distributed as dist
PROGRAM = json.loads(%r)
groups = {}
values = torch.zeros(16)
"""
_TAIL = """
def run(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(len(PROGRAM)), MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    for members in sorted({tuple(call[2]) for calls in PROGRAM for call in calls if call[2]}):
        groups[members] = dist.new_group(members) if len(members) < len(PROGRAM) else None
    for op, line, group, peer in PROGRAM[rank]:
        globals()["at_%d" % line](getattr(dist, op), **({"dst" if op == "send" else "src": peer} if peer >= 0 else {"group": groups[tuple(group)]}))


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=run, args=(rank,), daemon=True) for rank in range(len(PROGRAM))]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
"""


def program_text(program: Program) -> str:
    """Return a program that makes these calls over gloo, each at its line; its ranks are forked from one process that has imported torch."""
    lines = (_HEAD % json.dumps(program)).splitlines()
    for line in range(len(lines) + 1, 30):
        lines.append("def at_%d(call, **where): call(values, **where)" % line)
    return "\n".join(lines) + _TAIL
