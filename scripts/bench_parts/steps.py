"""What a training step costs: jobs of two ranks that take turns, one with the probe on, and what else people turn on."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

from bench_parts.ledger_cost import ledger_rows
from bench_parts.rows import Question, Sample, answer, interleave, unanswered
from bench_parts.starts import environment, run_environment

_STEPS = 4
_HOW = "Two ranks on gloo train four Linear layers of 256; %d steps of the one job, then of the other, all of them alive throughout." % _STEPS
STEP = Question(
    "step",
    "a DDP step, DDP_PROBE=1",
    "ratio",
    "ms",
    1.005,
    _HOW,
    "Of the probe, the ledger alone runs within a step, see its share; a row below says how far two equal jobs without the probe are apart here.",
)
OTHERS = {
    "again": Question("step-again", "the same job twice, without the probe in either", "ratio", "ms", None, _HOW),
    "info": Question("step-info", "the same with TORCH_DISTRIBUTED_DEBUG=INFO", "ratio", "ms", None, _HOW),
    "detail": Question("step-detail", "the same with TORCH_DISTRIBUTED_DEBUG=DETAIL", "ratio", "ms", None, _HOW),
    "profiler": Question("step-profiler", "the same within torch.profiler (CPU)", "ratio", "ms", None, _HOW),
}
_VARIABLES: Dict[str, Dict[str, str]] = {
    "again": {},
    "info": {"TORCH_DISTRIBUTED_DEBUG": "INFO"},
    "detail": {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    "profiler": {"BENCH_PROFILER": "1"},
}


class CrashedError(RuntimeError):
    """A rank has ended that was to go on."""


class Job:
    """Two ranks that wait to be told how many steps to run."""

    def __init__(self, env: Dict[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        self.ranks = [self._rank(number, port, env) for number in (0, 1)]
        self._answers()

    @staticmethod
    def _rank(number: int, port: str, env: Dict[str, str]) -> "subprocess.Popen[str]":
        place = {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        argv = [sys.executable, str(Path(__file__).with_name("job.py"))]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env={**env, **place}, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, universal_newlines=True)

    def steps(self) -> Sample:
        """Run some steps in both ranks; milliseconds a step: the slower rank's wall time, both ranks' CPU time."""
        for rank in self.ranks:
            assert rank.stdin is not None
            try:
                rank.stdin.write("%d\n" % _STEPS)
                rank.stdin.flush()
            except BrokenPipeError:
                raise CrashedError(self._ending()) from None
        times = [[float(word) for word in line.split()] for line in self._answers()]
        return Sample(1000 / _STEPS * max(wall for wall, _ in times), 1000 / _STEPS * sum(cpu for _, cpu in times))

    def _answers(self) -> List[str]:
        lines = [rank.stdout.readline() for rank in self.ranks if rank.stdout is not None]
        if not all(lines):
            raise CrashedError(self._ending())
        return lines

    def _ending(self) -> str:
        self.end()
        codes = sorted({rank.returncode for rank in self.ranks})
        return ", ".join("killed by %s" % signal.Signals(-code).name if code < 0 else "exit code %d" % code for code in codes)

    def end(self) -> None:
        """Let the ranks end by themselves, or end them."""
        for rank in self.ranks:
            if rank.stdin is not None:
                try:
                    rank.stdin.close()
                except BrokenPipeError:
                    continue
        for rank in self.ranks:
            try:
                rank.wait(20)
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()


def step_rows(folder: Path, launches: int, rounds: int, others: bool) -> Iterator[Dict[str, Any]]:
    """Yield the rows of a training step; several launches, because each one lays out its memory in another way."""
    found: Dict[str, List[Sample]] = {}
    crashed: Dict[str, str] = {}
    for _ in range(launches):
        for name, samples in _launch(folder, rounds, others, crashed).items():
            found.setdefault(name, []).extend(samples)
    if "off" not in found or "on" not in found:
        yield unanswered(STEP, "Not measured: the job does not run here (%s)." % ", ".join(sorted(set(crashed.values()))))
        return
    step = answer(STEP, found["off"], found["on"])
    if "again" in found:
        undecided(step, answer(OTHERS["again"], found["off"], found["again"])["result"])
    yield step
    yield from ledger_rows(folder, found["off"])
    for name, question in OTHERS.items():
        if name in found:
            yield answer(question, found["off"], found[name])
        elif name in crashed:
            yield unanswered(question, "The job does not survive it: %s." % crashed[name])


def undecided(step: Dict[str, Any], control: float) -> None:
    """Take the verdict back where two equal jobs are farther apart than the goal asks to tell."""
    if abs(control - 1) > step["goal"] - 1:
        step["met"] = None
        step["note"] = "Undecided: two equal jobs without the probe are %.1f %% apart in this run." % (100 * abs(control - 1))


def _launch(folder: Path, rounds: int, others: bool, crashed: Dict[str, str]) -> Dict[str, List[Sample]]:
    jobs = _jobs(folder, others, crashed)
    try:
        return interleave({name: job.steps for name, job in jobs.items()}, rounds, warm=3) if jobs else {}
    finally:
        for job in jobs.values():
            job.end()


def _jobs(folder: Path, others: bool, crashed: Dict[str, str]) -> Dict[str, Job]:
    environments = {"off": environment(), "on": run_environment(folder)}
    if others:
        environments.update({name: environment(**more) for name, more in _VARIABLES.items()})
    jobs: Dict[str, Job] = {}
    for name, env in environments.items():
        try:
            jobs[name] = Job(env)
            jobs[name].steps()
        except CrashedError as exc:
            crashed[name] = str(exc)
            jobs.pop(name, None)
    return jobs
