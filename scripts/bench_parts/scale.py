"""How the cost of a report grows with the number of ranks: simulated launches from 64 ranks up, their logs, their ledgers, and the verdict.

MEASURES are the columns and SIZES the lines of a table in docs/contributing/performance.md. CORES says on how
many cores a report reads: another entry is another column of each report.
"""

import os
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from bench_parts.report import Launch, Run, goals, grouped, report, simulate
from bench_parts.rows import Question, Sample, answer, unanswered
from bench_parts.starts import environment

SIZES = (64, 256, 1024, 4096, 10240)
RECORDS = 2000
CORES: Dict[str, Sequence[str]] = {"": (), "on one core": ("--cores", "1")}
"""What is added to the name of a column, and the options of its reports."""

_LIMIT = "Each line is decoded once, by msgspec, and folded in Python."
_GROWTH = "What a rank more costs between the two largest sizes, against the two before them: 1 is linear."
_GROWTH_LIMIT = "Some rules compare each rank with all others."


class Taken(NamedTuple):
    """What one look at a launch has cost, by unit, and what is wrong with the answer."""

    samples: Dict[str, Sample]
    wrong: str


class Measure(NamedTuple):
    """A column: which launch is looked at, how, and what each unit of it is called."""

    key: str
    fault: str
    records: int
    units: Dict[str, str]
    how: str
    take: Callable[[Launch, Path], Taken]


def measures() -> List[Measure]:
    """Return all columns, those that look at the same launch one after another."""
    return [*_reports("lines", "killed", 0), _VERDICT, *_reports("records", "other_op", RECORDS)]


def _reports(key: str, fault: str, records: int) -> Iterator[Measure]:
    what = "200 lines" if not records else "200 lines and %s records" % grouped(records)
    for suffix, options in CORES.items():
        name = ", ".join(filter(None, ["%s each" % what, suffix]))
        units = {"s": "report, " + name, "MiB": "its memory, " + name}
        how = "`python -m ddp_probe report --json` over ranks with %s each, one of them %s; the report names it." % (what, _WRONG[fault])
        yield Measure("%s%s" % (key, suffix and "-" + suffix.replace(" ", "-")), fault, records, units, how, _report_with(options))


_WRONG = {"killed": "killed by SIGKILL", "other_op": "in another collective than the rest"}


def _report_with(options: Sequence[str]) -> Callable[[Launch, Path], Taken]:
    def take(launch: Launch, folder: Path) -> Taken:
        run: Run = report(launch, folder / "answer.json", options)
        return Taken({"s": run.time, "MiB": Sample(run.memory, run.memory)}, run.wrong)

    return take


def _verdict(launch: Launch, folder: Path) -> Taken:
    """Run what a launcher runs once its last rank has stopped; it prints the verdict at its end."""
    from ddp_probe.traced.record import brief

    out = folder / "verdict.txt"
    argv = brief.arguments(launch.folder)
    actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 2)]
    into = (os.POSIX_SPAWN_OPEN, 1, str(out), os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
    began = time.perf_counter()
    _, _, usage = os.wait4(os.posix_spawn(argv[0], argv, environment(), file_actions=[*actions, into]), 0)
    took = Sample(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)
    said = out.read_text(encoding="utf-8")
    return Taken({"s": took}, "" if "ank %d " % launch.guilty in said else "The verdict does not name rank %d: %s" % (launch.guilty, said[:200]))


_VERDICT = Measure(
    "verdict",
    "killed",
    0,
    {"s": "verdict after the last rank stopped"},
    "The command that a launcher starts once its ranks have ended, from its start to its end; the verdict names the rank.",
    _verdict,
)


def scale_rows(folder: Path, rounds: int, sizes: Sequence[int] = SIZES) -> Iterator[Dict[str, Any]]:
    """Yield a row for each size, column and unit, then how each of them grows."""
    found: Dict[Tuple[str, str], Dict[int, float]] = {}
    for ranks in sizes:
        for row in _rows_of(folder, ranks, rounds if ranks < 4096 else 1):
            if row["cpu"] is not None:  # Wall time has more of the machine's other work in it the longer it takes.
                found.setdefault((row["series"], row["unit"]), {})[ranks] = row["cpu"]["result"]
            yield row
    for (series, unit), costs in found.items():
        yield from growth(series, unit, costs)


def _rows_of(folder: Path, ranks: int, rounds: int) -> Iterator[Dict[str, Any]]:
    launch, made = None, ()
    for measure in measures():
        if launch is None or made != (measure.fault, measure.records):
            shutil.rmtree(str(folder / "runs"), ignore_errors=True)
            launch, made = simulate(folder, ranks, measure.fault, measure.records), (measure.fault, measure.records)
        yield from _answers(measure, launch, [measure.take(launch, folder) for _ in range(rounds)])
    shutil.rmtree(str(folder / "runs"), ignore_errors=True)


def _answers(measure: Measure, launch: Launch, taken: List[Taken]) -> Iterator[Dict[str, Any]]:
    wrong = next((one.wrong for one in taken if one.wrong), "")
    for unit, column in measure.units.items():
        goal = dict(zip(("s", "MiB"), goals(launch.ranks)))[unit] if measure.key in ("lines", "verdict") and launch.ranks >= 1024 else None
        key = "scale-%s-%s-%d" % (measure.key, unit, launch.ranks)
        question = Question(key, "%s ranks: %s" % (grouped(launch.ranks), column), "cost", unit, goal, measure.how, _LIMIT)
        row = {**unanswered(question, wrong), "met": False, "gross": True} if wrong else answer(question, [], [one.samples[unit] for one in taken])
        yield {**row, "ranks": launch.ranks, "series": column}


def growth(series: str, unit: str, costs: Dict[int, float]) -> Iterator[Dict[str, Any]]:
    """Compare what one more rank costs at the end of the line with what it costs before: a constant share, as of the start, counts for nothing."""
    sizes = sorted(costs)[-3:]
    if len(sizes) < 3:
        return
    slopes = [(costs[b] - costs[a]) / (b - a) for a, b in zip(sizes, sizes[1:])]
    question = Question("scale-growth-%s" % series, "growth of: %s (%s)" % (series, unit), "ratio", unit, 1.5, _GROWTH, _GROWTH_LIMIT, "cpu")
    if min(slopes) <= 0:
        yield unanswered(question, "The sizes are too close to each other: the larger one did not cost more.")
    else:
        yield answer(question, *([Sample(slope, slope)] for slope in slopes))
