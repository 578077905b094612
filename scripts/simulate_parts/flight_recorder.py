"""Dumps of torch's Flight Recorder with what the ledgers of a run hold: for torch's own analyser, and for tests of the reader.

The form is that of torch 2.13 (version 2.10), in which ProcessGroupNCCL writes PREFIX<rank>; each call of a ledger is one entry.
"""

import glob
import os
import pickle
from typing import Any, Callable, Dict, List, Optional

from ddp_probe.reading import whole_ledger
from ddp_probe.reading.whole_ledger import Group, Ledger, Record
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_schema import ranks_of

VERSION = "2.10"
PREFIX = "nccl_trace_rank_"
_NAMES = {"all_gather_into_tensor": "_all_gather_base", "reduce_scatter_tensor": "_reduce_scatter_base", "barrier": "all_reduce_barrier"}
_DTYPES = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int"}

Dump = Dict[str, Any]


def write(folder: str, into: str, change: Optional[Callable[[int, Dump], None]] = None) -> int:
    """Write one dump for each ledger of a run's folder; return how many entries they have. `change` may alter one before it is written."""
    os.makedirs(into, exist_ok=True)
    count = 0
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "rank*" + schema.SUFFIX))):
        found = whole_ledger.read(path)
        if found.header is None:
            raise ValueError("%s: %s" % (path, found.problem))
        made = dump(found)
        if change is not None:
            change(found.header.rank, made)
        count += len(made["entries"])
        with open(os.path.join(into, PREFIX + str(found.header.rank)), "wb") as file:
            pickle.dump(made, file, protocol=2)
    return count


def dump(found: Ledger) -> Dump:
    """Return what the recorder of this rank would hold."""
    calls = [record for record in found.records if record.op in schema.COLLECTIVES and record.group is not None]
    entries = [entry for number, record in enumerate(calls) for entry in [_entry(number, record, found)]]
    config = {one.name: {"name": one.name, "desc": _described(one), "ranks": str(ranks_of(one.ranks))} for one in found.groups}
    return {"version": VERSION, "pg_config": config, "pg_status": _status(entries), "entries": entries}


def _described(group: Group) -> str:
    return group.description or "undefined"


def _entry(number: int, record: Record, found: Ledger) -> Dump:
    group, site = record.group, record.site
    assert group is not None
    assert found.header is not None
    base = found.header.wall_ns - found.header.mono_ns
    sizes = [[record.elements]] if record.elements else []
    dtypes = [_DTYPES.get(record.dtype, record.dtype)] * len(sizes)
    gathered = [[record.elements * group.size]] if record.op == "all_gather_into_tensor" else sizes
    frames = [{"name": record.op, "filename": "/env/site-packages/torch/distributed/distributed_c10d.py", "line": 3252}]
    frames += [{"name": site.function, "filename": site.file, "line": site.line}] if site is not None else []
    completed = record.state == "returned"
    return {
        "frames": frames,
        "record_id": number,
        "pg_id": int(group.name),
        "process_group": (group.name, _described(group)),
        "thread_name": "python",
        "thread_id": "1",
        "collective_seq_id": record.seq,
        "p2p_seq_id": 0,
        "op_id": record.seq,
        "profiling_name": "nccl:" + _NAMES.get(record.op, record.op),
        "time_created_ns": base + record.entered_ns + 1000,
        "input_sizes": sizes,
        "input_dtypes": dtypes,
        "output_sizes": gathered,
        "output_dtypes": dtypes,
        "state": "completed" if completed else "started",
        "time_discovered_started_ns": base + record.entered_ns + 2000,
        "time_discovered_completed_ns": base + record.left_ns if completed else None,
        "retired": completed,
        "timeout_ms": 1800000,
        "is_p2p": False,
    }


def _status(entries: List[Dump]) -> Dict[str, Dict[str, int]]:
    """Return the last numbers of each group."""
    found: Dict[str, Dict[str, int]] = {}
    for entry in entries:
        status = found.setdefault(str(entry["pg_id"]), {"last_completed_collective": -1})
        status["last_enqueued_collective"] = status["last_started_collective"] = entry["collective_seq_id"]
        if entry["state"] == "completed":
            status["last_completed_collective"] = entry["collective_seq_id"]
    return found
