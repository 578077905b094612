"""What a report over a large plain log costs, for logs of each kind, read by the real command in a process of its own."""

import os
import random
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

from bench_parts.rows import Question, Sample, answer
from bench_parts.starts import READ, REPO, environment

MEMORY = 200.0
_LIMIT = "One process reads, in Python; lines that may tell of trouble are looked at one by one until 5 MB of them are read."


class Kind(NamedTuple):
    """A kind of log, its size and its goal."""

    key: str
    what: str
    megabytes: int
    seconds: float


KINDS = (
    Kind("quiet", "a quiet training log", 100, 5.0),
    Kind("words", "words without meaning", 50, 10.0),
    Kind("warnings", "warnings of eight ranks", 50, 10.0),
    Kind("errors", "one exception a line", 50, 10.0),
    Kind("tracebacks", "tracebacks of eight ranks", 50, 10.0),
    Kind("timeouts", "timeouts of NCCL's watchdog", 50, 10.0),
    Kind("one-line", "one line without end", 50, 10.0),
)


def log_rows(folder: Path, rounds: int, short: bool) -> Iterator[Dict[str, Any]]:
    """Yield time and memory for each kind; the short form takes a tenth of each."""
    for kind in KINDS:
        size = kind.megabytes // 10 if short else kind.megabytes
        path = folder / (kind.key + ".log")
        _write(path, kind.key, size << 20)
        samples, memory = zip(*(_report(path) for _ in range(rounds)))
        path.unlink()
        how = "`python -m ddp_probe report --json` over %d MB of %s." % (size, kind.what)
        goal = 1.0 + kind.seconds if not short else 1.0 + kind.seconds / 2
        yield answer(Question("log-" + kind.key, "report over %d MB of %s" % (size, kind.what), "cost", "s", goal, how, _LIMIT, "cpu"), [], samples)
        most = [Sample(value, value) for value in memory]
        yield answer(Question("log-memory-" + kind.key, "its memory", "cost", "MiB", MEMORY, "The most that the process held.", _LIMIT), [], most)


def _write(path: Path, key: str, size: int) -> None:
    written = 0
    with path.open("w", encoding="utf-8") as stream:
        for line in _LINES[key]():
            written += stream.write(line)
            if written >= size:
                return


def _report(path: Path) -> Any:
    told = path.with_suffix(".peak")
    argv = [sys.executable, "-c", READ, str(path), str(told)]
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environment(PYTHONPATH=str(REPO)), file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    assert status in (0, 1 << 8, 3 << 8), status  # clear, found, undecided
    return Sample(time.perf_counter() - began, usage.ru_utime + usage.ru_stime), int(told.read_text()) / 1024


def _quiet() -> Iterator[str]:
    chance = random.Random(1)  # noqa: S311  # Letters for a log.
    for step in count():
        yield "2023/05/01 10:%02d:%02d - mmengine - INFO - Epoch(train)  [1][%5d/90000]  lr: 1.0000e-02  eta: 0:10:00  memory: %d  loss: %.4f\n" % (
            step // 60 % 60, step % 60, step, 5000 + step % 100, chance.random(),
        )  # fmt: skip


def _vocabulary() -> List[str]:
    chance = random.Random(2)  # noqa: S311  # Letters for a log.
    return ["".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(chance.randint(2, 9))) for _ in range(30000)]


def _words(begin: str = "") -> Iterator[str]:
    chance, words = random.Random(3), _vocabulary()  # noqa: S311  # Letters for a log.
    while True:
        yield begin + " ".join(chance.choices(words, k=14)) + "\n"


def _warnings() -> Iterator[str]:
    return ("[rank%d]: /train/data.py:%d: UserWarning: failed to read %x\n" % (step % 8, step, step * 7919) for step in count())


def _errors() -> Iterator[str]:
    return _words("RuntimeError: ")


def _tracebacks() -> Iterator[str]:
    form = 'Traceback (most recent call last):\n[rank%d]:   File "/train/t%d.py", line %d, in main\n[rank%d]:    go(%d)\n[rank%d]: ValueError: %d\n'
    form = "[rank%d]: " + form
    return (form % (step % 8, step % 8, step % 1000, step, step % 8, step, step % 8, step) for step in count())


def _timeouts() -> Iterator[str]:
    form = "[rank%d]:[E101 ProcessGroupNCCL.cpp:563] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d) ran for %d ms.\n"
    return (form % (step % 8, step % 8, step, 600000 + step) for step in count())


def _one_line() -> Iterator[str]:
    while True:
        yield "RuntimeError: Connection closed by peer "


_LINES = {
    "quiet": _quiet,
    "words": _words,
    "warnings": _warnings,
    "errors": _errors,
    "tracebacks": _tracebacks,
    "timeouts": _timeouts,
    "one-line": _one_line,
}
