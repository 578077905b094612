"""With --again a suite with a few failures passes if each failed test then passes three times.

Ten thousand tests, many of which launch jobs, run side by side on a machine that others use as well: now and then
one of them misses its time. A defect fails again; seven times out of eight, so does what fails every second time.
The failed tests run beside those that ran at the same time as they did, because two tests that share a file or a
name by mistake fail only together. What failed is printed in full and named at the end.

Two things are not forgiven: a test of the promises, or of what keeps them, and a test that was forgiven before.
Those are named in .ci/forgiven, which the next commit carries.
"""

import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional

import pytest

LOOKS = 3
MOST = 5  # With more failures something is wrong.
PROMISES = ("contract", "patching", "record", "ledger")  # The rooms that are not forgiven.


class Again:
    """A plugin of the process that distributes the tests."""

    def __init__(self) -> None:
        self._running: Dict[str, Dict[str, None]] = {}  # Each test that runs now, with those that ran beside it.
        self._failed: Dict[str, None] = {}
        self._neighbours: Dict[str, None] = {}
        self._session: Optional[pytest.Session] = None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note who runs beside whom."""
        for neighbours in self._running.values():
            neighbours[nodeid] = None
        self._running[nodeid] = dict.fromkeys(self._running)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note who failed."""
        if report.failed:
            self._failed[_without_group(report.nodeid)] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Keep the neighbours of a test that failed."""
        neighbours = self._running.pop(nodeid, {})
        if _without_group(nodeid) in self._failed:
            self._neighbours.update(dict.fromkeys(map(_without_group, neighbours)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note which file could not be read: it fails again."""
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the session, whose exit status pytest returns at the end."""
        self._session = session

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Run what failed again, once everything is printed."""
        session, names = self._session, ", ".join(self._failed)
        if session is None or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        if not 0 < len(self._failed) <= MOST or self._is_refused(config.rootpath):
            return
        beside = [each for each in self._neighbours if each not in self._failed]
        for number in range(LOOKS):
            place = "beside %d others" % len(beside) if beside else "by itself"
            print("--again: run %d of %d, %s: %s" % (number + 1, LOOKS, place, names), flush=True)
            command = _pytest(config, [*self._failed, *beside])
            done = subprocess.run(command, cwd=str(config.invocation_params.dir), stdin=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                print("--again: failed again: %s" % names, flush=True)
                return
        print("--again: failed once, then passed %d times: %s" % (LOOKS, names), flush=True)
        _remember(config.rootpath, list(self._failed))
        session.exitstatus = pytest.ExitCode.OK

    def _is_refused(self, root: Path) -> bool:
        """Say which of the failed tests are not forgiven, if there are any."""
        before = _forgiven(root)
        promises = [name for name in self._failed if set(_function(name).split("/")) & set(PROMISES)]
        known = [name for name in self._failed if _function(name) in before]
        if promises:
            print("--again: not forgiven, as a promise is not: %s" % ", ".join(promises), flush=True)
        if known:
            print("--again: not forgiven a second time (.ci/forgiven): %s" % ", ".join(known), flush=True)
        return bool(promises or known)


def _pytest(config: pytest.Config, names: List[str]) -> List[str]:
    """Return the command that runs these tests as they ran."""
    workers = config.getoption("numprocesses", None) or 0
    options = ["-q", "--dist", "loadgroup", "-n", str(workers)]
    if config.getoption("--all", False):
        options.append("--all")
    return [sys.executable, "-m", "pytest", *options, *names]


def _forgiven(root: Path) -> List[str]:
    """Return which test functions were forgiven."""
    path = root / ".ci" / "forgiven"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _remember(root: Path, names: List[str]) -> None:
    """Add the functions of these tests to those that were forgiven, in a checkout that has a folder for them."""
    if (root / ".ci").is_dir():
        functions = sorted({*_forgiven(root), *map(_function, names)})
        (root / ".ci" / "forgiven").write_text("".join("%s\n" % each for each in functions), encoding="utf-8")


def _function(name: str) -> str:
    """Return a test's name without its parameters: another draw has others."""
    return name.partition("[")[0]


def _without_group(nodeid: str) -> str:
    """Return a test's name without the group that pytest-xdist puts behind it."""
    return nodeid[: nodeid.rfind("@")] if nodeid.rfind("@") > nodeid.rfind("]") else nodeid
