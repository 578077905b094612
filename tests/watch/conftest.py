"""Runs with ledgers of any content: book(rank, *parts) writes one rank's."""

import os
import platform
from pathlib import Path
from typing import Callable, Sequence

import pytest
from ledger_books import Book, Call, Part, born

from ddp_probe.shared import ledger_schema as schema


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run."""
    path = tmp_path / "runs" / "run-1"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def book(folder: Path) -> Callable[..., Book]:
    """Write the ledger and the log of one rank; by default its process is this one, which runs."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()

    def make(
        rank: int, *parts: Part, world: int = 8, pid: int = 0, host: str = "", lived: float = 100.0, lines: Sequence[str] = (), since: int = -1
    ) -> Book:
        pid, host = pid or os.getpid(), host or platform.node()
        name = "rank%05d.%s.%d" % (rank, host, pid)
        made = Book(folder / (name + schema.SUFFIX), rank, world, pid, host, born(pid) if since < 0 else since, boot, lived)
        for part in parts:
            if isinstance(part, Call):
                made.call(part)
            else:
                made.phase(part)
        made.write()
        start = '{"event":"process.start","phase":"point","ts":"2026-11-22T05:00:00.000000Z","rank":%d,"pid":%d,"host":"%s"}' % (rank, pid, host)
        (folder / (name + ".jsonl")).write_text("".join(line + "\n" for line in (start, *lines)), encoding="utf-8")
        return made

    return make
