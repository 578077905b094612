"""What is said on stderr while a job hangs: by its launcher, or by the lowest rank of a host that has none."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

pytestmark = pytest.mark.slow

_JOB = Path(__file__).parent / "programs" / "until_released.py"
_GUARD = 200.0
_AGENT = ("-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1")


def _line(words: str) -> str:
    """Return the place of the line of the program that says so of itself, as a sentence has it."""
    (found,) = [number for number, text in enumerate(_JOB.read_text().splitlines(), 1) if text.endswith("# " + words)]
    return "until_released.py:%d" % found


class Job:
    """Some processes that were started together, with one stderr."""

    def __init__(self, folder: Path, env: Dict[str, str]) -> None:
        self.folder = folder
        self.released = folder / "released"
        self._env = env
        self._processes: List[Any] = []

    def start(self, *arguments: str, **more: str) -> None:
        """Start a Python."""
        with open(self.folder / "out", "ab") as out, open(self.folder / "err", "ab") as err:
            command = [sys.executable, *arguments]
            self._processes.append(subprocess.Popen(command, env={**self._env, **more}, cwd=self.folder, stdout=out, stderr=err))

    @property
    def said(self) -> List[str]:
        """The lines of the probe on stderr so far, without its name."""
        lines = (self.folder / "err").read_text().splitlines()
        return [line[len("ddp_probe: ") :] for line in lines if line.startswith("ddp_probe: ")]

    def wait_for(self, pattern: str) -> str:
        """Wait until a line like this has been said, and return it."""
        until = time.monotonic() + _GUARD
        while time.monotonic() < until and any(process.poll() is None for process in self._processes):
            for line in self.said:
                if re.search(pattern, line):
                    return line
            time.sleep(0.1)
        raise AssertionError((self.folder / "err").read_text())

    def release(self) -> List[int]:
        """Let it go on, wait for its end, and return the exit codes."""
        self.released.touch()
        return [process.wait(_GUARD) for process in self._processes]

    def end(self) -> None:
        """End what still runs; ranks outlive an agent that is killed, and go on to their end once they are released."""
        self.released.touch()
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def job(tmp_path: Path, armed: Callable[..., Dict[str, str]], free_port: Callable[[], int]) -> Iterator[Job]:
    """A job that is watched with a short DDP_PROBE_HANG_AFTER, in the default folder of runs."""
    found = Job(tmp_path, armed(tmp_path / "ddp_probe_runs", DDP_PROBE_HANG_AFTER="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port())))
    try:
        yield found
    finally:
        found.end()


def _events(job: Job, read_events: Any, pattern: str) -> List[Dict[str, Any]]:
    paths = sorted({path.resolve() for path in (job.folder / "ddp_probe_runs").glob("*/" + pattern)})
    found = [event for path in paths for event in read_events(path)]
    return [event for event in found if event["event"] in ("launcher.hang", "launcher.resumed")]


def _left_over(job: Job) -> List[str]:
    """Return the command lines of processes that name the job's folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        found += [text] if str(job.folder) in text and int(path.parent.name) != os.getpid() else []
    return found


def test_the_launcher_speaks_while_the_job_hangs(job: Job, free_port: Callable[[], int], read_events: Any) -> None:
    """torchrun names the missing rank and both lines while it hangs, then says who moves on; it exits with 0, and no child stays."""
    job.start(*_AGENT, "--master_port", str(free_port()), str(_JOB), "rank", str(job.released), "hangs")
    said = job.wait_for("DDP629.*rank 1 is at ")  # A later line, if rank 1 had not written its stacks before the first.
    assert re.match(r"No rank has moved for \d+ s\. DDP629 rank-missing-from-collective \[rank 1\]: Rank 0 waits in all_reduce", said)
    assert _line("the line of rank 0") in said
    assert "rank 1 is at" in said
    assert _line("the line that waits for the file") + " in comes_late" in said
    assert said.endswith(". Read on: python -m ddp_probe report")
    assert job.release() == [0]
    assert re.match(r"Rank(s 0-1 move| [01] moves) on after \d+ s\.$", job.said[-1])
    assert _left_over(job) == []
    told = _events(job, read_events, "launcher.*.jsonl")
    *hangs, resumed = told[
        next(number for number, event in enumerate(told) if event.get("said") == said) :
    ]  # Before, one may wait for the other to join.
    assert [event["said"] for event in hangs] == job.said[job.said.index(said) : -1]
    assert {(event["event"], tuple(event["ranks"])) for event in hangs} == {("launcher.hang", (0, 1))}
    assert (resumed["event"], resumed["lasted"] > 2) == ("launcher.resumed", True)
    assert _events(job, read_events, "rank*.jsonl") == []


_UNSEEN = pytest.param("unseen", "reduce", marks=pytest.mark.skipif(sys.version_info < (3, 9), reason="torch 1.12 has no functional collectives"))


@pytest.mark.parametrize(("where", "others"), [("before", "lock"), _UNSEEN])
def test_ranks_of_which_no_ledger_tells_anything(where: str, others: str, job: Job, free_port: Callable[[], int]) -> None:
    """Before the first process group, and in a collective of DTensor's, the launcher and watch say where each rank stands, by the stacks."""
    program = Path(__file__).parent / "programs" / "before_group.py"
    found = [(number, re.search(r"# line: (\w+)", text)) for number, text in enumerate(program.read_text().splitlines(), 1)]
    lines = {mark[1]: number for number, mark in found if mark}
    job.start(*_AGENT[:3], "3", *_AGENT[4:], "--master_port", str(free_port()), str(program), where, str(job.released))
    said = job.wait_for(r"No call of torch\.distributed says why\. Ranks 0-1 .*; rank 2 ")
    places = r"Ranks 0-1 are at before_group\.py:%d in \w+.*; rank 2 is at before_group\.py:%d in read_config"
    assert re.search(places % (lines[others], lines["config"]), said)
    command = [sys.executable, "-m", "ddp_probe", "watch", "--json"]
    done = subprocess.run(command, cwd=job.folder, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    ranks = json.loads(done.stdout)["ranks"]
    assert [(row["rank"], row["site"]["line"]) for row in ranks] == [(0, lines[others]), (1, lines[others]), (2, lines["config"])]
    assert {row["state"] for row in ranks} == {"no ledger" if where == "before" else "running"}
    if where == "unseen":
        assert [row["rank"] for row in ranks if row["stands_out"]] == [2]
    assert job.release() == [0]


def test_ranks_without_a_launcher_that_stand_before_their_first_group(job: Job) -> None:
    """Of ranks that are started one by one, rank 0 says where each stands before there is a process group, and so does the report."""
    program = Path(__file__).parent / "programs" / "before_group.py"
    for rank in range(3):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "3"}
        job.start(str(program), "before", str(job.released), **own)
    said = job.wait_for(r"No call of torch\.distributed says why\. Ranks 0-1 .*; rank 2 ")
    assert re.search(r"Ranks 0-1 are at before_group\.py:\d+ in wait_for_lock; rank 2 is at before_group\.py:\d+ in read_config\.", said)
    done = subprocess.run([sys.executable, "-m", "ddp_probe", "report", "--brief"], cwd=job.folder, capture_output=True, check=False, text=True)
    found = r"Ranks 0-2 still run\. Ranks 0-1 are at .+:\d+ in wait_for_lock\. Rank 2 is at .+:\d+ in read_config\."
    assert re.search(found, done.stdout), done
    assert job.release() == [0, 0, 0]


def test_a_rank_at_work_is_no_alarm(job: Job) -> None:
    """The parent of mp.spawn says that a rank saves while another waits, that this is no fault, and who moves on; restore() ends its thread."""
    job.start(str(_JOB), "spawns", str(job.released), "works")
    said = job.wait_for("DDP637.*now at ")  # A later line, if rank 0 had not written its stacks before the first.
    assert "DDP637 rank-works-while-others-wait [rank 0] note: Rank 0 is in torch.save since " in said
    where = (_line("the line that saves"), _line("the line that waits for the file"))
    assert re.search(r", called at \S.*%s, now at %s in comes_late \(1 collective behind\); rank 1 waits" % where, said), said
    assert _line("the line of rank 0") in said
    assert re.search(r"Nothing is wrong if that takes so long\.|\(\d+ more characters\)", said)  # The paths of a checkout may be long.
    assert job.release() == [0]
    assert re.match(r"Rank(s 0-1 move| [01] moves) on after \d+ s\.$", job.said[-1])
    assert (job.folder / "out").read_text() == "no child is left\n1 0\n"


def _typed(job: Job, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "ddp_probe", *command], cwd=job.folder, capture_output=True, check=False, text=True)


def test_without_a_launcher_the_lowest_rank_speaks(job: Job, read_events: Any) -> None:
    """Of ranks that are started one by one, rank 0 says where each of them stands, with its line, and who moves on; it starts no process."""
    for rank in ("0", "1"):
        job.start(str(_JOB), "rank", str(job.released), "hangs", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2")
    said = job.wait_for("No rank has moved")
    waits, missing = _line("the line of rank 0"), _line("the line that waits for the file")
    where = "Rank 0 is in all_reduce number 2 at %s; rank 1 is at %s in comes_late" % (waits, missing)
    assert re.match(r"No rank has moved for \d+ s\. %s.* Read on: python -m ddp_probe report$" % re.escape(where), said)
    for command in (["report", "--brief"], ["watch", "--once"]):
        until = time.monotonic() + _GUARD
        done = _typed(job, *command)
        while missing not in done.stdout and time.monotonic() < until:  # watch gives the others some seconds before it names a rank.
            done = _typed(job, *command)
        assert missing in done.stdout, done
    assert len(_left_over(job)) == 2
    assert job.release() == [0, 0]
    assert re.match(r"Rank(s 0-1 move| [01] moves) on after \d+ s\.$", job.said[-1])
    assert {event["event"] for event in _events(job, read_events, "rank00000.*.jsonl")} == {"launcher.hang", "launcher.resumed"}
    assert _events(job, read_events, "rank00001.*.jsonl") == []


_GLOO_ABORTS = "terminate called without an active exception"  # Now and then when a rank exits, without the probe, too: docs/contributing/tried.md.


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", ["import", "busy-import", "pdb", "late"])
def test_a_rank_that_imports_starts_late_or_is_in_the_debugger_is_no_alarm(
    way: str, torchrun: Callable[..., Any], armed: Callable[..., Dict[str, str]], tmp_path: Path
) -> None:
    """What is said while the other rank waits is that nothing is wrong if that takes so long; scripts/false_alarms has more of these jobs."""
    program = Path(__file__).parent / "programs" / "slow_and_healthy.py"
    for _ in range(3):
        done = torchrun(program, args=[way, "0", "10"], env=armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="3"))
        if _GLOO_ABORTS not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("ddp_probe: No rank")]
    assert said or way == "busy-import"
    assert [line for line in said if "Nothing is wrong if" not in line] == []


_UNLIKE = Path(__file__).parent / "programs" / "unlike_and_healthy.py"


def _report(runs: Path, run_python: Callable[..., Any]) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads(run_python(["-m", "ddp_probe", "report", "--json", runs / "latest"]).stdout)
    return found


def test_calls_that_differ_by_design_are_no_alarm(
    torchrun: Callable[..., Any], armed: Callable[..., Dict[str, str]], run_python: Callable[..., Any], tmp_path: Path
) -> None:
    """Join over loaders of different length, a pipeline, experts, uneven last steps and roles leave the run clear and the launcher silent."""
    for _ in range(3):
        done = torchrun(_UNLIKE, env=armed(tmp_path / "runs"), nproc=4, timeout=_GUARD)
        if _GLOO_ABORTS not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("ddp_probe:")] == []
    report = _report(tmp_path / "runs", run_python)
    assert (report["verdict"], report["findings"], report["undecided"]) == ("clear", [], [])


def test_a_rank_that_leaves_after_join_is_named(
    torchrun: Callable[..., Any], armed: Callable[..., Dict[str, str]], run_python: Callable[..., Any], tmp_path: Path
) -> None:
    """Ranks whose loaders ended earlier under Join are not blamed for a backward pass that another rank skips afterwards."""
    torchrun(_UNLIKE, args=["join", "left"], env=armed(tmp_path / "runs"), nproc=4, timeout=_GUARD)
    (finding,) = _report(tmp_path / "runs", run_python)["findings"]
    lines = _UNLIKE.read_text(encoding="utf-8").splitlines()
    condition = 1 + next(number for number, line in enumerate(lines) if "number == 3" in line)
    assert finding["ranks"] == [2]
    assert "unlike_and_healthy.py:%d" % condition in finding["verdict"]
