"""The registered jobs whose ranks wait for each other, looked at while they hang: by the launcher, by `report`, and by `watch`."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from processes import kill_in, processes_in, run_in
from registry import FOLDER, JOBS, Job, label, shell, stack

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing import watch_json
from ddp_probe.showing.watch.watch_look import LiveView
from ddp_probe.wording.words import named

_GUARD = 200.0
_AFTER = "5"  # Seconds, as scripts/record_jobs has it; `watch` names nobody before 3.
_GROUP = "init_process_group("
_BACKWARD = "pieces: loss.backward()"


class Hang(NamedTuple):
    """The lines that have to be named, as text in the job's program, or in another file that is named first."""

    own: Tuple[str, ...]  # Of the rank that is missing or differs: one of these.
    others: str  # Of the ranks that wait for it.
    ledger: Tuple[str, ...] = ()  # The line that is in the ledger of that rank, if it has no stack.


HANGS = {
    "07_divergent_checkpoint_branch": Hang(('everybody is there."""\n    dist.barrier()',), _BACKWARD),
    "08_long_validation_on_rank0": Hang(("time.sleep(1)", ".abs()", "say(0"), "\n    dist.barrier()"),
    "08_uneven_batches": Hang(("    dist.barrier()",), _BACKWARD),
    "08_all_reduce_against_broadcast": Hang(("broadcast(metric",), "else:\n        dist.all_reduce(metric)"),
    "08_collective_on_rank0_only": Hang(("all_reduce(mean)",), "dist.barrier()"),
    "08_barrier_against_all_reduce": Hang(("dist.barrier()",), "all_reduce(score)"),
    "08_broadcast_against_all_reduce": Hang(("else:\n        dist.all_reduce(weights)",), "dist.broadcast(weights"),
    "08_all_gather_object_on_one_rank": Hang(("all_gather_object(names",), "dist.barrier()"),
    "08_broadcast_object_on_rank0_only": Hang(("broadcast_object_list(",), "save(1)\n    dist.all_reduce(loss)"),
    "08_other_root": Hang(("dist.broadcast(weights",), "dist.broadcast(weights"),
    "08_send_without_recv": Hang(("dist.send(",), "dist.barrier()"),
    "08_recv_from_wrong_rank": Hang(("dist.recv(",), "dist.recv("),
    "08_circle_of_groups": Hang(("groups[rank])",), "groups[rank])"),
    "08_dataset_blocks_in_main": Hang(('open("shard.fifo"',), _BACKWARD),
    "08_dataset_blocks_in_worker": Hang(("in enumerate(loader)",), _BACKWARD),
    "08_backward_skipped_on_one_rank": Hang(("if not torch.isfinite(loss)",), "loss.backward()", ledger=("    dist.barrier()",)),
    "08_fsdp1_step_skipped": Hang(("dist.barrier()",), "model(inputs)"),
    "08_fsdp2_step_skipped": Hang(("dist.barrier()",), "model(inputs)"),
    "10_rank_never_started": Hang((), _GROUP),
    "12_holds_the_gil": Hang(("_CAPTION.match(",), "dist.all_reduce(counted)"),
    "12_stopped_by_sigstop": Hang(("os.kill(", "dist.all_reduce("), "dist.all_reduce(", ("dist.all_reduce(",)),
}
LEFT_OUT = {
    "08_different_sizes": "gloo aborts a rank at once",
    "08_different_dtypes": "gloo aborts a rank at once",
    "08_other_dtype_on_one_rank": "gloo aborts a rank at once",
    "08_other_shape_in_all_gather": "gloo aborts a rank at once",
    "08_different_dtypes_silent": "it does not hang",
    "08_other_shape_silent": "it does not hang",
    "08_work_never_waited_for": "it does not hang",
    "08_metrics_in_another_order": "it does not hang",
    "08_barrier_that_pairs": "gloo tells rank 0 at once that the others have ended",
    **dict.fromkeys(("08_batchnorm_" + way for way in ("evaluates", "skips", "stops", "meets")), "it is recorded after its own timeout"),
    "08_unused_parameter": "DDP raises",
    "10_master_addr_unreachable": "the only rank has no process group and no ledger: it never reaches the store",
    "10_master_addr_unknown": "the only rank has no process group and no ledger: it never reaches the store",
    "12_killed_by_sigkill": "gloo tells the other rank at once",
    "12_killed_by_sigsegv": "gloo tells the other rank at once",
    "12_sys_exit_of_one_rank": "gloo tells the other rank at once",
    "12_exit_after_an_exception": "gloo tells the other rank at once",
    "08_no_sync_on_one_rank": "gloo tells the other rank at once",
    "12_data_error_on_one_rank": "gloo tells the other rank at once",
    "12_out_of_memory": "gloo tells the other rank at once",
    "12_open_files_used_up": "gloo tells the other rank at once",
}
_ON_CARDS = FOLDER.parent / "hangs" / "programs" / "on_cards.py"
_RANKS = re.compile(r"(?<=nproc_per_node=)\d")
_SILENT = {"10_rank_never_started": "legacy"}  # The store of torch 1.12 holds the GIL while it waits, and there is no launcher.
_OF = {label(job): job for job in JOBS if stack() in job.stacks and _SILENT.get(label(job)) != stack()}


class Case(NamedTuple):
    """A job, on how many ranks, if not on its own number, and whether eccl takes the place of gloo."""

    name: str
    ranks: int = 0
    on_cards: bool = False

    @property
    def job(self) -> Job:
        """Return the job of the registry, with the command that starts it so."""
        job = _OF[self.name]
        command = _RANKS.sub(str(self.ranks), job.command) if self.ranks else job.command
        return job._replace(command=command.replace("{program}", "%s {program}" % _ON_CARDS) if self.on_cards else command)

    @property
    def id(self) -> str:
        """Return what tells it from the others."""
        return self.name + (" on %d" % self.ranks if self.ranks else "") + (" eccl" if self.on_cards else "")


CASES = [Case(name) for name in HANGS if name in _OF]
_LIVE: List[Any] = [
    *CASES,
    Case("08_collective_on_rank0_only", on_cards=True),
    pytest.param(Case("08_backward_skipped_on_one_rank", ranks=8, on_cards=True), marks=pytest.mark.nightly),
]


def _place(job: Job, text: str) -> str:
    """Return the place of the line on which a text ends that is in the file once."""
    found = re.match(r"(\w+): (.*)", text)
    name, text = ("%s.py" % found[1], found[2]) if found else (job.name + ".py", text)
    before, between, after = (FOLDER / name).read_text(encoding="utf-8").partition(text)
    assert between, (name, text)
    assert text not in after, (name, text)
    return "%s:%d" % (name, (before + between).count("\n") + 1)


class Run:
    """A job that was started, its one log of what it prints, and its run."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path, root: Path) -> None:
        self.process = process
        self.home = folder  # In which each of its processes runs.
        self._root = root

    @property
    def folder(self) -> str:
        """Return the run's folder."""
        return run_in(self._root)

    def printed(self) -> str:
        """Return what it has printed so far."""
        return Path(str(self.home) + ".log").read_text(encoding="utf-8", errors="replace")

    def wait(self, pattern: str = r"^ddp_probe: No rank.* has moved for .*$") -> str:
        """Wait until somebody has said why nothing moves, or a line like this one, and return that line."""
        guard = time.monotonic() + _GUARD
        while self.process.poll() is None and time.monotonic() < guard:
            found = re.search(pattern, self.printed(), re.MULTILINE)
            if found:
                return found[0]
            time.sleep(0.2)
        raise AssertionError(self.printed())

    def end(self) -> List[int]:
        """End what it has started; return what is left of it then."""
        guard = time.monotonic() + _GUARD
        while processes_in(self.home) and time.monotonic() < guard:
            kill_in(self.home)
            self.process.poll()
            time.sleep(0.05)
        self.process.wait()
        return processes_in(self.home)


def start(command: str, folder: Path, env: Dict[str, str]) -> Run:
    """Start a job in a folder below this one, with a session of its own."""
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    home = folder / "job"
    home.mkdir()
    with open(str(home) + ".log", "wb") as log:
        shell_line = ["bash", "-c", command]
        process = subprocess.Popen(shell_line, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    return Run(process, home, folder / "runs")


@pytest.fixture
def run(request: Any, case: Case, armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path) -> Iterator[Run]:
    """The job of this test, started in a folder of its own, with more patience than the test has."""
    cards = request.getfixturevalue("gcu_env")["PYTHONPATH"] if case.on_cards else ""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER=_AFTER, JOB_PATIENCE="300")
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [env["PYTHONPATH"], cards]))
    started = start(shell(case.job, free_port()), tmp_path, env)
    try:
        yield started
    finally:
        started.end()


def _reported(folder: str) -> Tuple[List[int], str]:
    """Return the ranks of the first finding, and all that it says and shows."""
    finding = judge(load([folder])).findings[0]
    sites = ["%s:%d" % (item.site.file, item.site.line) for item in finding.evidence if item.site is not None]
    return list(finding.ranks), " ".join([finding.id, finding.verdict, *(item.text for item in finding.evidence), *sites])


def _watched(folder: str) -> Tuple[List[int], Dict[int, str]]:
    """Return who stands out, and at which line each rank is."""
    found = json.loads(watch_json.as_json(LiveView([folder]).look(), "run"))
    sites = {row["rank"]: "%s:%d" % (Path(row["site"]["file"]).name, row["site"]["line"]) for row in found["ranks"] if row["site"]}
    return [row["rank"] for row in found["ranks"] if row["stands_out"]] + found["absent"], sites


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("case", _LIVE, ids=lambda case: case.id)
def test_the_ranks_and_both_lines_are_told_while_it_hangs(case: Case, run: Run) -> None:
    """The launcher, the report and `watch` name the guilty ranks and the lines of both sides while the job hangs."""
    job, hang = case.job, HANGS[case.name]
    said = run.wait()
    ranks, text = _reported(run.folder)
    outliers, sites = _watched(run.folder)
    assert run.process.poll() is None
    print("LIVE", case.id, said, ranks, text, outliers, sites, sep="\n")
    own, others = {_place(job, one) for one in hang.own}, _place(job, hang.others)
    assert ranks == list(job.ranks) or (ranks == [0, 1] and "nproc_per_node=2" in job.command)
    assert "[%s]" % named(ranks) in said or "torchrun" not in job.command
    for told in (said, text):
        assert others in told
        assert not own or any(one in told for one in own)
    assert set(job.ranks) <= set(outliers)
    assert set(outliers) == set(ranks) or (outliers == [0, 1] and "nproc_per_node=2" in job.command)
    assert others in sites.values()
    assert not own or {sites[rank] for rank in ranks} & {*own, *(_place(job, one) for one in hang.ledger)}
    assert run.end() == []


def test_each_job_is_looked_at_or_has_a_reason() -> None:
    """A job of the families that hang is in one of the two lists."""
    families = {label(job) for job in JOBS if job.name[:2] in ("07", "08", "12")}
    assert families <= {*HANGS, *LEFT_OUT}
