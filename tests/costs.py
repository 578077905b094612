"""What the tests cost: pytest's option --cpu, a table of CPU seconds by folder, by file and by test, to see what has become expensive.

Counted is the worker's own time and that of every child it has waited for. CPU seconds say the same on a busy machine as on an idle one, wall time
does not; the seconds of waiting beside them are wall time less CPU time, and mean something on an idle machine alone.
"""

import resource
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import pytest

_LINES = 40


class Cost(NamedTuple):
    """What one test, or several together, took."""

    cpu: float
    wall: float


class Costs:
    """Measure each test where it runs, and add up where the results come together."""

    def __init__(self) -> None:
        """Start with nothing measured."""
        self._begun: Dict[str, Tuple[float, float]] = {}
        self._found: Dict[str, Cost] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Begin before the fixtures do."""
        self._begun[item.nodeid] = (_cpu(), time.monotonic())
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """End after the fixtures have, in time for the last report of the test."""
        yield
        cpu, wall = self._begun.pop(item.nodeid)
        item.user_properties.append(("cost", [_cpu() - cpu, time.monotonic() - wall]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test's last report says."""
        if report.when == "teardown":
            for value in (value for name, value in report.user_properties if name == "cost"):
                self._found[report.nodeid] = Cost(*value)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table."""
        total = _sum(list(self._found.values()))
        terminalreporter.section("CPU seconds of %d tests: %.0f; waiting: %.0f" % (len(self._found), total.cpu, max(0.0, total.wall - total.cpu)))
        for title, depth in (("folder", 2), ("file", 3), ("test function", 4)):
            terminalreporter.write_line("%8s %8s %6s  %s" % ("CPU", "waiting", "tests", title))
            for name, costs in self._dearest(depth):
                sums = _sum(costs)
                terminalreporter.write_line("%8.1f %8.1f %6d  %s" % (sums.cpu, max(0.0, sums.wall - sums.cpu), len(costs), name))

    def _dearest(self, depth: int) -> List[Tuple[str, List[Cost]]]:
        groups: Dict[str, List[Cost]] = {}
        for nodeid, cost in self._found.items():
            path, _, function = nodeid.partition("@")[0].partition("::")
            parts = [*path.split("/"), function.partition("[")[0]] if depth == 4 else path.split("/")[:depth]
            groups.setdefault("/".join(parts), []).append(cost)
        return sorted(groups.items(), key=lambda group: -_sum(group[1]).cpu)[:_LINES]


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _sum(costs: List[Cost]) -> Cost:
    return Cost(sum(cost.cpu for cost in costs), sum(cost.wall for cost in costs))
