"""Ledgers of ranks that seem to run: each names this process, so that it counts as alive."""

import os
import sys
import time
from pathlib import Path
from typing import Callable

import pytest
from ledger_books import Book, Call, Part, born

from ddp_probe.traced.hangs.others import Others

sys.path.append(str(Path(__file__).resolve().parent.parent / "jobs"))  # For the list of jobs.


@pytest.fixture
def book(tmp_path: Path) -> Callable[..., Book]:
    """Write the ledger of one rank of this host: what it is in, for how many seconds it has not moved, and its process."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()

    def make(rank: int, *parts: Part, ago: float = 30.0, world: int = 2, pid: int = 0, host: str = "here", since: int = -1) -> Book:
        pid = pid or os.getpid()
        made = Book(tmp_path / ("rank%05d.%s.%d.%d.ledger" % (rank, host, pid, rank)), rank, world, pid, host, 0, boot, 100.0)
        for part in parts:
            if isinstance(part, Call):
                made.call(part)
            else:
                made.phase(part)
        made.write(born=born(os.getpid()) if since < 0 else since, moved_ns=time.monotonic_ns() - int(ago * 1e9))
        return made

    return make


@pytest.fixture
def others(tmp_path: Path) -> Others:
    """All ledgers of the folder, read from outside."""
    return Others(str(tmp_path), "here", lambda _: True)
