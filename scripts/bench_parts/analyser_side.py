"""One side of a comparison with torch's Flight Recorder analyser: reads what a run has left, finds where the ranks part, and says how long that took.

  analyser_side.py torch FOLDER    the dumps in FOLDER, by torch's own functions
  analyser_side.py ledgers FOLDER  the ledgers in FOLDER, by ddp_probe

Neither counts its imports. What is printed also says how much was read and which ranks are to blame, so that nobody is fast by reading less.
"""

import contextlib
import glob
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict

PREFIX = "nccl_trace_rank_"


def of_torch(folder: str) -> Callable[[], Dict[str, Any]]:
    """Return what reads and analyses the dumps, as torchfrtrace does."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    def work() -> Dict[str, Any]:
        args = JobConfig().parse_args([folder, "-p", PREFIX])
        details, version = read_dir(args)
        entries = sum(len(one["entries"]) for one in details.values())
        made = build_db(details, args, version)
        calls = [call.collective_id for call in made.ncclcalls]
        bad = [one for one in made.collectives if not one.pass_check]
        blamed = sorted({int(rank) for one in bad for rank in one.mismatch_collectives or {}})
        return {"read": entries, "matched": sum(number is not None for number in calls), "blamed": blamed}

    return work


def of_ledgers(folder: str) -> Callable[[], Dict[str, Any]]:
    """Return what reads and compares the ledgers, as the rules of a report do; the logs beside them are not read."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    from ddp_probe.judging import parted
    from ddp_probe.reading.load_run import assemble
    from ddp_probe.reading.model import LoggedProcess, Run

    def work() -> Dict[str, Any]:
        run, processes = Run(), []
        for path in sorted(glob.glob(os.path.join(folder, "rank*.ledger"))):
            process = LoggedProcess(path[: -len("ledger")] + "jsonl")
            process.ledger_file, process.rank = path, int(os.path.basename(path)[4:9])
            processes.append(process)
        for process in processes:
            process.world_size = len(processes)
        split = parted.split(assemble(run, processes))
        calls = sum(len(calls.numbers) for process in processes if process.ledger is not None for calls in process.ledger.groups.values())
        return {"read": calls, "blamed": sorted(split.blame) if split is not None else []}

    return work


def main(side: str, folder: str) -> None:
    """Work, and print what was found and how long it took."""
    work = {"torch": of_torch, "ledgers": of_ledgers}[side](folder)
    said = io.StringIO()
    cpu, wall = time.process_time(), time.perf_counter()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        found = work()
    found.update(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
