"""A lighter interpreter for the rooms that launch many whole jobs: a fifth less CPU for each process that imports torch.

scripts/_environment puts a .pth file into the environments of the tests. In a process that has DDP_TESTS_LIGHT set it lets the garbage collector run
less often while modules are imported, and not at all over what is left at the end: half a second of a process that has imported torch. The rooms
below look at what a job does and at what is recorded of it; the promises (contract/), the recorder, the activation and the patches are tested in
interpreters as they come, and with --all everything is.

The tests' own processes are made lighter as well: the collector need not go over thousands of tests and all modules again and again. The reader frees
what an earlier reading has left by a whole collection, which is nothing in a process of its own and a quarter of a second in a worker.
"""

import contextlib
import gc
import os
import sys
from typing import Iterator

import pytest

_NAME = "DDP_TESTS_LIGHT"
_ROOMS = ("tests/accelerator/", "tests/advice/", "tests/clients/", "tests/jobs/", "tests/remedies/", "tests/runs/")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Set it for the children of this test and of the fixtures that begin with it, or take it away."""
    if item.nodeid.startswith(_ROOMS) and not item.config.getoption("--all"):
        os.environ[_NAME] = "1"
    else:
        os.environ.pop(_NAME, None)


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
    reader = sys.modules.get("ddp_probe.read.load")
    if reader is not None:
        assert reader.without_collector
        reader.without_collector = _collector_off
    gc.collect()
    gc.freeze()
