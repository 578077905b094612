"""A lighter interpreter for the rooms that look at whole jobs: a quarter less CPU for each process that imports torch.

scripts/_environment puts a .pth file into the environments of the tests. In a process that has DDP_TESTS_LIGHT set it lets the garbage collector run
less often while modules are imported, and not at all over what is left at the end: half a second of a process that has imported torch. Most rooms
look at what a job does and at what is recorded of it; the promises (contract/), the recorder, the activation, the patches and what is installed are
tested in interpreters as they come, too: a quarter of their tests in each run, another quarter on the other stack, drawn by the seed. With --all
everything is.

The tests' own processes are made lighter as well: the collector runs less often, and it need not go over thousands of tests and all modules again
and again. The reader frees what an earlier reading has left by a whole collection, which costs nothing in a process of its own and a quarter of a
second in a worker.
"""

import contextlib
import gc
import os
import random
import sys
from typing import Iterator

import pytest
import schedule

_NAME = "DDP_TESTS_LIGHT"
_AS_THEY_COME = tuple("tests/%s/" % room for room in ("activation", "contract", "install", "ledger", "packaging", "patching", "record"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Set it for the children of this test and of the fixtures that begin with it, or take it away."""
    if item.config.getoption("--all") or (item.nodeid.startswith(_AS_THEY_COME) and _drawn(item)):
        os.environ.pop(_NAME, None)
    else:
        os.environ[_NAME] = "1"


def _drawn(item: pytest.Item) -> bool:
    quarter = random.Random("%d %s" % (schedule.seed(), item.nodeid)).randrange(4)
    return quarter == schedule.stack()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the collector run seldom from here on, as in the children."""
    if not session.config.getoption("--all"):
        gc.set_threshold(100_000, 50, 1000)


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Take what is there out of the collector's sight, and keep the reader from putting it back."""
    if session.config.getoption("--all"):
        return
    reader = sys.modules.get("ddp_probe.reading.load_run")
    if reader is not None:
        assert reader.without_collector
        reader.without_collector = _collector_off
    gc.collect()
    gc.freeze()
