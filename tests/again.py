"""With --again a suite with a few failures passes if each failed test then passes three times by itself.

Ten thousand tests, many of which launch jobs, run side by side on a machine that others use as well: now and then one of them misses its time.
A defect fails again; seven times out of eight, so does what fails every second time. What failed is printed in full and named at the end.

A test of the promises, or of what keeps them, is not forgiven: their failures are races with other processes, which running alone takes away. What
was forgiven is counted by its name in .ci/forgiven, where there is a folder .ci: who sees a name there twice has a defect to look for.
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
        self._failed: Dict[str, None] = {}
        self._session: Optional[pytest.Session] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note who failed."""
        if report.failed:
            self._failed[_without_group(report.nodeid)] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note which file could not be read: it fails again."""
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the session, whose exit status pytest returns at the end."""
        self._session = session

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Run what failed again, once everything is printed."""
        session = self._session
        if session is None or session.exitstatus != pytest.ExitCode.TESTS_FAILED or not 0 < len(self._failed) <= MOST:
            return
        promises = [name for name in self._failed if set(name.partition("::")[0].split("/")[:-1]) & set(PROMISES)]
        if promises:
            print("--again: not forgiven, as a promise is not: %s" % ", ".join(promises), flush=True)
            return
        names = ", ".join(self._failed)
        for number in range(LOOKS):
            print("--again: run %d of %d by itself: %s" % (number + 1, LOOKS, names), flush=True)
            command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *self._failed]
            if subprocess.run(command, cwd=str(config.invocation_params.dir), stdin=subprocess.DEVNULL, check=False).returncode != 0:
                print("--again: failed again: %s" % names, flush=True)
                return
        print("--again: failed once, then passed %d times by itself: %s" % (LOOKS, names), flush=True)
        _remember(config.rootpath / ".ci", list(self._failed))
        session.exitstatus = pytest.ExitCode.OK


def _remember(folder: Path, names: List[str]) -> None:
    """Count each name in the file of what was forgiven: a line has a count and a name."""
    if not folder.is_dir():
        return
    path = folder / "forgiven"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    counts = {name: int(count) for count, _, name in (line.partition(" ") for line in lines)}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    path.write_text("".join("%d %s\n" % (counts[name], name) for name in sorted(counts)), encoding="utf-8")


def _without_group(nodeid: str) -> str:
    """Return a test's name without the group that pytest-xdist puts behind it."""
    return nodeid[: nodeid.rfind("@")] if nodeid.rfind("@") > nodeid.rfind("]") else nodeid
