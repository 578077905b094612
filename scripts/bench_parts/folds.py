"""What many hosts cost: a launch whose hosts each send one fold, read together by one process, and a report on all cores against one core."""

import os
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

from bench_parts.report import Launch, Run, grouped, report, simulate
from bench_parts.rows import Question, Sample, answer, unanswered

RANKS = 102400
_ON_ALL_CORES = 10240
_HOW = "`python -m ddp_probe report --json` over %s folds of %s ranks with 200 lines each, one of them killed by SIGKILL; the report names it."
_LIMIT = "Most of it is Python: rules that look at each rank."
_SENT = "The size of the files that hosts send, by the number of ranks."
_CORES = "`python -m ddp_probe report --json` over the same files, on all cores of this machine against one, by turns."


def fold_rows(folder: Path, ranks: int = RANKS) -> Iterator[Dict[str, Any]]:
    """Yield time, memory and bytes of a report over folds."""
    launch = simulate(folder, ranks, folds=True)
    names = [name for name in os.listdir(launch.folder) if name.endswith(".fold")]
    sent = sum(os.stat(os.path.join(launch.folder, name)).st_size for name in names)
    run = report(launch, folder / "answer.json")
    shutil.rmtree(str(folder / "runs"))
    key, what = "folds-%d" % ranks, "report over the folds of %s ranks" % grouped(ranks)
    how = _HOW % (grouped(len(names)), grouped(ranks))
    yield _answer(Question("%s-s" % key, what, "cost", "s", 60.0, how, _LIMIT, "wall"), run.time, run)
    memory = Question("%s-MiB" % key, "its memory", "cost", "MiB", 1024.0, "The most that this process held.", _LIMIT)
    yield _answer(memory, Sample(run.memory, run.memory), run)
    size = sent / 1024 / ranks
    yield answer(Question("%s-sent" % key, "what a host sends for each rank", "cost", "KiB", None, _SENT, ""), [], [Sample(size, size)])


def core_rows(folder: Path, rounds: int, ranks: int = _ON_ALL_CORES) -> Iterator[Dict[str, Any]]:
    """Yield the time of a report on all cores against that on one."""
    launch = simulate(folder, ranks)
    runs = [pair(launch, folder / "answer.json") for _ in range(rounds)]
    shutil.rmtree(str(folder / "runs"))
    what = "report over %s ranks of 200 lines, on %d cores against one" % (grouped(ranks), os.cpu_count() or 1)
    question = Question("report-cores", what, "ratio", "s", 1 / 1.6 if ranks == _ON_ALL_CORES else None, _CORES, _LIMIT, "wall")
    wrong = next((run.wrong for both in runs for run in both if run.wrong), "")
    yield _wrong(question, wrong) if wrong else answer(question, [one.time for one, _ in runs], [every.time for _, every in runs])


def pair(launch: Launch, into: Path) -> Tuple[Run, Run]:
    """Read a launch on one core, then on all."""
    return report(launch, into, ["--cores", "1"]), report(launch, into)


def _answer(question: Question, sample: Sample, run: Run) -> Dict[str, Any]:
    return _wrong(question, run.wrong) if run.wrong else answer(question, [], [sample])


def _wrong(question: Question, why: str) -> Dict[str, Any]:
    return {**unanswered(question, why), "met": False, "gross": True}
