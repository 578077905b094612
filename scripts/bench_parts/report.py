"""What a report over many ranks costs: simulated launches with one fault in them, read by the real command in a process of its own.

The short form takes two sizes; scale.py takes many.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from bench_parts.rows import Question, Sample, answer, unanswered
from bench_parts.starts import READ, REPO, environment

EVENTS = 200
SHORT_SIZES = (64, 256)
_HOW = (
    "`python -m ddp_probe report --json` over %s lines (%d MB) that scripts/simulate_ranks wrote, rank %d of %s killed by SIGKILL;"
    " the report names it."
)
_LIMIT = "Each line is decoded once, by msgspec, and folded in Python; one process does it."


class Launch(NamedTuple):
    """A simulated launch on disk."""

    folder: str
    ranks: int
    guilty: int
    lines: int
    megabytes: int


class Run(NamedTuple):
    """One report: seconds, MiB, and what it said."""

    time: Sample
    memory: float
    wrong: str


def goals(ranks: int) -> Tuple[float, float]:
    """Return seconds and MiB: 5 s for 1 024 ranks and 60 s for 10 240, of fewer ranks their share and half a second to start."""
    seconds = {1024: 5.0, 10240: 60.0}.get(ranks, 0.5 + 5.0 * ranks / 1024)
    return seconds, 1024.0


def report_rows(folder: Path, rounds: int) -> Iterator[Dict[str, Any]]:
    """Yield time and memory for two sizes, and what a line of the larger launch costs against one of the smaller."""
    costs: List[Tuple[Launch, List[Run]]] = []
    for ranks in SHORT_SIZES:
        launch = simulate(folder, ranks)
        runs = [report(launch, folder / "answer.json") for _ in range(rounds)]
        shutil.rmtree(str(folder / "runs"))
        costs.append((launch, runs))
        yield from _answers(launch, runs)
    yield _linear(*costs)


def simulate(folder: Path, ranks: int, fault: str = "killed", records: int = 0, *, folds: bool = False) -> Launch:
    """Write the files of a launch in which one rank is at fault; with records, each rank has a ledger of as many calls."""
    guilty = ranks // 3
    argv = [sys.executable, str(REPO / "scripts" / "simulate_ranks"), str(ranks), "--events", str(EVENTS), "--out", str(folder / "runs")]
    argv += ["--fault", "%s:%d" % (fault, guilty)] + (["--records", str(records)] if records else []) + ["--folds"] * folds
    done = subprocess.run(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    path = done.stdout.decode().strip()
    files = [os.path.join(path, name) for name in os.listdir(path) if name.endswith(".jsonl")]
    return Launch(path, ranks, guilty, sum(_lines(file) for file in files), sum(os.stat(file).st_size for file in files) // 1000000)


def _lines(file: str) -> int:
    with open(file, "rb") as stream:
        return sum(1 for _ in stream)


def report(launch: Launch, into: Path, options: Sequence[str] = ()) -> Run:
    """Start the command, with more options, and wait for it; it says itself how much memory it held."""
    told = into.with_suffix(".peak")
    argv = [sys.executable, "-c", READ, launch.folder, str(told), *options]
    out = (os.POSIX_SPAWN_OPEN, 1, str(into), os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 2)]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environment(PYTHONPATH=str(REPO)), file_actions=[*quiet, out])
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    return Run(Sample(wall, usage.ru_utime + usage.ru_stime), int(told.read_text()) / 1024, _wrong(launch, into, status))


def _wrong(launch: Launch, into: Path, status: int) -> str:
    """Return what is wrong with an answer; a report that is fast and names nobody is worth nothing."""
    try:
        found = json.loads(into.read_text(encoding="utf-8"))
        ranks = found["findings"][0]["ranks"] if found["findings"] else []
    except (ValueError, KeyError) as exc:
        return "The report cannot be read (status %d): %s." % (status, exc)
    return "" if ranks == [launch.guilty] else "The report names the ranks %s and not %d." % (ranks, launch.guilty)


def _answers(launch: Launch, runs: List[Run]) -> Iterator[Dict[str, Any]]:
    count = grouped(launch.ranks)
    how = _HOW % (grouped(launch.lines), launch.megabytes, launch.guilty, count)
    seconds, memory = goals(launch.ranks)
    what = "report over %s ranks of %d events" % (count, EVENTS)
    # CPU time, because a small launch is read while CI's other work goes on.
    asked = [
        (Question("report-%d" % launch.ranks, what, "cost", "s", seconds, how, _LIMIT, "cpu"), [run.time for run in runs]),
        (
            Question("report-memory-%d" % launch.ranks, "its memory", "cost", "MiB", memory, "The most that the same process held.", _LIMIT),
            [Sample(run.memory, run.memory) for run in runs],
        ),
    ]
    wrong = next((run.wrong for run in runs if run.wrong), "")
    for question, samples in asked:
        yield {**unanswered(question, wrong), "met": False, "gross": True} if wrong else answer(question, [], samples)


def grouped(number: int) -> str:
    """Return a number with spaces between thousands."""
    return format(number, ",").replace(",", " ")


def _linear(small: Tuple[Launch, List[Run]], large: Tuple[Launch, List[Run]]) -> Dict[str, Any]:
    """Compare the CPU time of a line: wall time has more of the machine's other work in it the longer it takes."""
    a, b = ([Sample(*(1e6 / launch.lines * value for value in run.time)) for run in runs] for launch, runs in (small, large))
    count = min(len(a), len(b))
    what = "a line of the larger launch, against one of the smaller"
    how, limit = "The rows above, divided by their lines: 1 is linear.", "Some rules compare each rank with all others."
    return answer(Question("report-linear", what, "ratio", "µs", 1.5, how, limit, "cpu"), a[:count], b[:count])
