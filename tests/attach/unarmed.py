"""Jobs of tests/jobs, started without the probe and left to hang; and what looks from outside have to say of each."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "jobs"))

from processes import kill_in, processes_in
from registry import JOBS, shell, stack

from ddp_probe.attaching import proc, py_spy, ranks
from ddp_probe.judging import looks
from ddp_probe.reading import proc_files
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.shared.own_code import task

_PATIENCE, _LONG = "240", 120.0


__all__ = ("HANGS", "Hang", "Running", "stack", "start")


class Hang(NamedTuple):
    """A job that hangs, and the answer: a rule with its ranks and the text of their line, or an open question."""

    job: str
    rule: str  # A slug, or that of the open question.
    ranks: Tuple[int, ...] = ()
    line: str = ""  # Part of the source line of the first of these ranks.
    stacks: Tuple[str, ...] = ("new", "legacy")
    id: str = ""


HANGS = (
    Hang("07_divergent_checkpoint_branch", "seen-in-different-calls", (0, 1), "loss.backward()"),
    Hang("08_all_gather_object_on_one_rank", "seen-in-different-calls", (1,), "all_gather_object"),
    Hang("08_all_reduce_against_broadcast", "seen-in-different-calls", (0, 1), "broadcast"),
    Hang("08_backward_skipped_on_one_rank", "seen-in-different-calls", (1,), "dist.barrier()"),
    Hang("08_barrier_against_all_reduce", "seen-in-different-calls", (2,), "barrier"),
    Hang("08_broadcast_against_all_reduce", "seen-in-different-calls", (0, 1, 2, 3), "broadcast"),
    Hang("08_broadcast_object_on_rank0_only", "seen-in-different-calls", (0, 1), "broadcast_object_list"),
    Hang("08_circle_of_groups", "all-wait"),
    Hang("08_collective_on_rank0_only", "seen-in-different-calls", (0, 1), "all_reduce"),
    Hang("08_dataset_blocks_on_one_rank", "seen-elsewhere", (1,), "", id="08_dataset_blocks_in_main"),
    Hang("08_fsdp_step_skipped_on_one_rank", "seen-in-different-calls", (1,), "barrier", stacks=("new",)),
    Hang("08_long_validation_on_rank0", "seen-elsewhere", (0,)),
    Hang("08_other_root", "seen-in-different-calls", (0, 1, 2)),
    Hang("08_recv_from_wrong_rank", "seen-in-different-calls", (0, 1, 2)),
    Hang("08_send_without_recv", "seen-in-different-calls", (0, 1, 2), "send"),
    Hang("08_uneven_batches", "seen-in-different-calls", (0, 1), "backward()"),
    Hang("10_rank_never_started", "not-seen"),
    Hang("12_holds_the_gil", "seen-computing", (1,)),
    Hang("12_stopped_by_sigstop", "seen-not-running", (1,)),
)


class Running:
    """A job that runs without the probe in a folder of its own."""

    def __init__(self, command: str, folder: Path, env: Dict[str, str], ranks: int, log: Optional[Path] = None) -> None:
        self.folder, self._ranks = folder, ranks
        self.log = log or folder / "job.log"
        with open(str(self.log), "wb") as out:
            self.process = subprocess.Popen(
                command, shell=True, executable="/bin/bash", cwd=str(folder), env=env, stdout=out, stderr=out, start_new_session=True
            )

    def members(self) -> List[ranks.Member]:
        """Return the ranks that attach finds in this folder."""
        here = set(processes_in(self.folder))
        try:
            jobs = ranks.find(None, True)
        except Exception:
            return []
        return [one for job in jobs for one in job.members if one.pid in here]

    def settle(self, waits_in_init: bool = False, ends: bool = False) -> List[ranks.Member]:
        """Wait until a rank waits for others and none is still at its beginning; return the ranks, none if the job may end and has."""
        end = time.monotonic() + _LONG
        while time.monotonic() < end and self.process.poll() is None:
            found = self.members()
            if len(found) >= self._ranks and _settled(found, waits_in_init):
                return found
            time.sleep(0.5)
        if ends and self.process.poll() is not None:
            return []
        raise AssertionError("The job did not come to hang: %s" % self.log.read_text(encoding="utf-8", errors="replace")[-2000:])

    def settle_moving(self) -> List[ranks.Member]:
        """Wait until each rank is past its beginning and trains; return the ranks."""
        end = time.monotonic() + _LONG
        while time.monotonic() < end and self.process.poll() is None:
            found = self.members()
            if len(found) >= self._ranks and "loss" in self.log.read_text(encoding="utf-8", errors="replace"):
                return found
            time.sleep(0.5)
        raise AssertionError(self.log.read_text(encoding="utf-8", errors="replace")[-2000:])

    def kill(self) -> None:
        """End the job."""
        kill_in(self.folder)
        self.process.wait()


def _settled(found: List[ranks.Member], waits_in_init: bool) -> bool:
    before = {one.pid: (proc_files.stat(one.pid), proc.switches(one.pid)) for one in found}
    time.sleep(1.0)
    idle = 0
    for one in found:
        now, (then, woken) = proc_files.stat(one.pid), before[one.pid]
        frames = main_frames(py_spy.read(one.pid, native=False).threads)
        if now is None or now.state in (*proc_files.GONE, *proc.STOPPED):
            continue
        if task([(frame.file, frame.function) for frame in frames]) == "import" or not frames:
            return False
        if looks.operation(frames) == looks.INIT and not waits_in_init:
            return False
        woke = 0 if waits_in_init else (proc.switches(one.pid) or 0) - (woken or 0)
        idle += then is not None and now.cpu - then.cpu < 0.05 and woke < 3
    return idle > 0


def start(name: str, folder: Path, env: Dict[str, str], port: int) -> Running:
    """Start a job of tests/jobs without the probe."""
    job = next(job for job in JOBS if name in (job.name, job.id))
    ranks_of = 1 if "nproc" not in job.command else int(job.command.partition("--nproc_per_node=")[2].partition(" ")[0])
    env = {**env, "JOB_PATIENCE": _PATIENCE, "OMP_NUM_THREADS": "1"}
    return Running(shell(job, port), folder, env, ranks_of)
