"""What the tests cost: pytest's option --cpu, a table of CPU seconds by folder, by file and by test, to see what has become expensive.

Counted is the worker's own time and that of every child it has waited for. CPU seconds say the same on a busy machine as on an idle one, wall time
does not; the seconds of waiting beside them are wall time less CPU time, and mean something on an idle machine alone.
"""

import os
from typing import Any, Dict, Iterator, List, Tuple

import pytest

_LINES = 40


class Costs:
    """Measure each test where it runs, and add up where the results come together."""

    def __init__(self) -> None:
        """Start with nothing measured."""
        self._begun: Dict[str, Tuple[float, float]] = {}
        self._costs: List[Tuple[str, float, float]] = []

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Begin before the fixtures do."""
        self._begun[item.nodeid] = _used()
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """End after the fixtures have, in time for the last report of the test."""
        yield
        (began_cpu, began), (cpu, now) = self._begun.pop(item.nodeid), _used()
        item.user_properties.append(("cost", [cpu - began_cpu, now - began]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test's last report says."""
        cost: Any = dict(report.user_properties).get("cost")
        if report.when == "teardown" and cost:
            self._costs.append((report.nodeid, *cost))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table."""
        tests, cpu, waiting = self._sums(0).get("", (0, 0.0, 0.0))
        terminalreporter.section("CPU seconds of %d tests: %.0f; waiting: %.0f" % (tests, cpu, waiting))
        for title, depth in (("folder", 2), ("file", 3), ("test function", 4)):
            terminalreporter.write_line("%8s %8s %6s  %s" % ("CPU", "waiting", "tests", title))
            dearest = sorted(self._sums(depth).items(), key=lambda named: -named[1][1])
            for name, (tests, cpu, waiting) in dearest[:_LINES]:
                terminalreporter.write_line("%8.1f %8.1f %6d  %s" % (cpu, waiting, tests, name))

    def _sums(self, depth: int) -> Dict[str, Tuple[int, float, float]]:
        """Return how many tests there are, their CPU seconds and their waiting, by so many parts of their names."""
        sums: Dict[str, Tuple[int, float, float]] = {}
        for nodeid, cpu, wall in self._costs:
            path, _, function = nodeid.partition("@")[0].partition("::")
            parts = path.split("/")[:depth] + [function.partition("[")[0]] * (depth > 3)
            name = "/".join(parts)
            tests, before, waiting = sums.get(name, (0, 0.0, 0.0))
            sums[name] = tests + 1, before + cpu, waiting + max(0.0, wall - cpu)
        return sums


def _used() -> Tuple[float, float]:
    """Return the CPU seconds of this process and of its children, and the clock."""
    *cpu, clock = os.times()
    return sum(cpu), clock
