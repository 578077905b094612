"""Runs some of torch's own tests of torch.distributed, over gloo with two ranks, and prints a JSON object for each test as it ends.

The ranks of a test are children of this process, spawned or forked as the variable START says. Each spawned one imports this file again.
"""

import json
import os
import sys
import time
import unittest

_DEFAULTS = {"BACKEND": "gloo", "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1", "START": "spawn"}
for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)

import torch.multiprocessing  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402  # It reads these variables.


class TestDistBackendStarted(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """The tests as torch's own suite assembles them."""

    def setUp(self) -> None:
        """Start the ranks."""
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context(os.environ["START"]).Process)


class _Outcomes(unittest.TestResult):
    """Prints what became of each test."""

    def __init__(self) -> None:
        super().__init__()
        self._began = 0.0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  # unittest's name
        super().startTest(test)
        self._began = time.monotonic()

    def _say(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        name = test.id().rpartition(".")[2]
        print(json.dumps({"test": name, "outcome": outcome, "seconds": time.monotonic() - self._began, "why": why[-2000:]}), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._say(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._say(test, "skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._say(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._say(test, "failed", self._exc_info_to_string(err, test))


def never_run(name: str) -> bool:
    """Tell whether unittest skips this test before it starts its ranks."""
    return bool(getattr(getattr(TestDistBackendStarted, name), "__unittest_skip__", False))


def main() -> None:
    """Run the tests that are named, or print the names of all: those that start no rank in the second list."""
    names = unittest.TestLoader().getTestCaseNames(TestDistBackendStarted)
    if not sys.argv[1:]:
        with_ranks = [name for name in names if not never_run(name)]
        print(json.dumps([with_ranks, [name for name in names if never_run(name)]]))
        return
    unittest.TestSuite(TestDistBackendStarted(name) for name in sys.argv[1:]).run(_Outcomes())


if __name__ == "__main__":
    main()
