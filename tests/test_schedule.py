"""Which cases of a sweep are drawn, and which tests stay together."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import pytest
import schedule

ROOM = "tests/jobs/test_jobs.py::"


class Case(NamedTuple):
    """As much of a test as is asked for when shares are drawn."""

    nodeid: str
    marker: Optional[Any]

    def get_closest_marker(self, name: str) -> Any:
        """Return its mark, if it has that one."""
        return self.marker if name == "sample" else None


def _sweep(test: str, share: int, cases: int, room: str = ROOM, **named: str) -> List[Case]:
    return [Case("%s%s[%d]" % (room, test, number), pytest.mark.sample(share, **named).mark) for number in range(cases)]


def _drawn(cases: List[Any], quick: bool = False) -> List[str]:
    gone = {case.nodeid for case in schedule._not_drawn(cases, quick)}
    return [case.nodeid for case in cases if case.nodeid not in gone]


def _numbers(drawn: List[str], test: str) -> List[str]:
    return [each.partition("[")[2] for each in drawn if "::%s[" % test in each]


def test_a_share_is_drawn_and_the_same_seed_draws_it_again() -> None:
    """Of forty cases with sample(7) seven are drawn, the same ones each time, and a test without the mark always runs."""
    cases = [*_sweep("test_a", 7, 40), Case(ROOM + "test_b", None)]
    drawn = _drawn(cases)
    assert (len(drawn), drawn[-1]) == (8, ROOM + "test_b")
    assert _drawn(cases) == drawn


def test_tests_over_one_list_draw_the_same_cases() -> None:
    """Three tests that share launches draw the same cases, also if one of them has a part of the list alone."""
    names = ("test_a", "test_b", "test_c")
    drawn = _drawn([case for name, count in zip(names, (40, 40, 20)) for case in _sweep(name, 7, count, of="launches")])
    first, second, third = (_numbers(drawn, name) for name in names)
    assert len(first) == 7
    assert first == second
    assert third == [number for number in first if int(number[:-1]) < 20]


def test_quick_draws_a_third() -> None:
    """With --quick a share of seven is one of three."""
    assert len(_drawn(_sweep("test_a", 7, 40), quick=True)) == 3


def test_quick_draws_as_many_as_the_sweep_says() -> None:
    """A sweep without a share runs whole, and with --quick as many as its `few`."""
    cases = [Case("%stest_a[%d]" % (ROOM, number), pytest.mark.sample(few=5).mark) for number in range(40)]
    assert list(map(len, (_drawn(cases), _drawn(cases, quick=True)))) == [40, 5]


class Launch:
    """As much of a test that may launch jobs as is asked for when turns are drawn."""

    def __init__(self, nodeid: str, scope: str = "function", mark: str = "", **named: str) -> None:
        self.nodeid = nodeid
        self._marks = {mark: SimpleNamespace(args=(), kwargs=named)}
        self._fixtureinfo = SimpleNamespace(name2fixturedefs={"launched": [SimpleNamespace(scope=scope, argname="launched")]})

    def get_closest_marker(self, name: str) -> Any:
        """Return its mark, if it has that one."""
        return self._marks.get(name)


def _turns(monkeypatch: pytest.MonkeyPatch, version: Any, tests: List[Launch]) -> List[str]:
    monkeypatch.setattr(schedule.sys, "version_info", version)
    return [test.nodeid for test in tests if schedule._has_its_turn(test)]


def _both_stacks(monkeypatch: pytest.MonkeyPatch, tests: List[Launch]) -> List[List[str]]:
    return [_turns(monkeypatch, version, tests) for version in ((3, 11), (3, 8))]


def test_each_stack_has_another_quarter_of_what_launches_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 launches in a room or marked as slow, each stack has 70 to 130 of its own."""
    tests = [Launch("tests/runs/test_x.py::test_%d" % number) for number in range(200)]
    tests += [Launch("tests/read/test_y.py::test_%d" % number, mark="slow") for number in range(200)]
    new, legacy = _both_stacks(monkeypatch, tests)
    assert all(70 <= len(names) <= 130 for names in (new, legacy))
    assert set(new).isdisjoint(legacy)


@pytest.mark.parametrize(("room", "mark"), [("read", ""), ("contract", "sample")])
def test_the_stacks_divide_these(monkeypatch: pytest.MonkeyPatch, room: str, mark: str) -> None:
    """Of 200 tests that read, or of the sweeps of a promise, one stack has 75 to 125, the other the rest."""
    tests = [Launch("tests/%s/test_x.py::test[%d]" % (room, number), mark=mark) for number in range(200)]
    new, legacy = _both_stacks(monkeypatch, tests)
    assert 75 <= len(new) <= 125
    assert sorted([*new, *legacy]) == sorted(test.nodeid for test in tests)


def test_tests_over_one_list_have_their_turn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tests that read the same recordings have the same ones in a run."""
    names = ("test_a", "test_b")
    tests: List[Launch] = []
    for name in names:
        tests += [Launch("tests/read/x.py::%s[%d]" % (name, number), mark="sample", of="jobs") for number in range(50)]
    drawn = _turns(monkeypatch, (3, 11), tests)
    assert 0 < len(drawn) < 100
    assert _numbers(drawn, "test_a") == _numbers(drawn, "test_b")


def test_quick_leaves_out_what_launches_in_a_room_of_both(repo: Path, run_python: Callable[..., Any]) -> None:
    """With --quick the stories that launch attempts are left out, and what reads attempts is kept."""
    command = ["-m", "pytest", "-q", "-n", "0", "--collect-only", "--quick", "tests/restarts"]
    done = run_python(command, cwd=repo)
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert files == {"tests/restarts/test_attempts.py"}


def test_what_shares_a_launch_has_its_turn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files whose tests share a launch, a run has all tests or none."""
    tests = [Launch("tests/remedies/test_%d.py::test_%d" % (file, number), "module") for file in range(20) for number in range(5)]
    drawn = [each.partition("::")[0] for each in _turns(monkeypatch, (3, 11), tests)]
    assert 0 < len(set(drawn)) < 20
    assert {drawn.count(file) for file in drawn} == {5}


def test_what_is_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promises, what launches nothing on the traced side, and what one stack alone can pass, wait for no turn."""
    tests = [Launch("tests/contract/test_x.py::test_%d" % number) for number in range(50)]
    tests += [Launch("tests/ledger/test_y.py::test_%d" % number) for number in range(50)]
    tests += [Launch("tests/runs/test_z.py::test_%d" % number, mark="skipif") for number in range(50)]
    assert list(map(len, _both_stacks(monkeypatch, tests))) == [150, 150]


@pytest.mark.parametrize(
    ("source", "options", "chosen"),
    [
        ("TESTPATHS", {}, False),
        ("INVOCATION_DIR", {}, False),
        ("ARGS", {}, True),
        ("TESTPATHS", {"keyword": "launch"}, True),
        ("TESTPATHS", {"markexpr": "slow"}, True),
        ("TESTPATHS", {"--all": True}, True),
        ("TESTPATHS", {"--quick": True}, True),
    ],
)
def test_a_run_of_chosen_tests_has_all_of_them(pytestconfig: pytest.Config, source: str, options: Dict[str, Any], chosen: bool) -> None:
    """A path, -k, -m, --all and --quick choose, which are options of this pytest; a run that names nothing takes turns."""
    for name in options:
        pytestconfig.getoption(name)

    class Config:
        args_source = pytest.Config.ArgsSource[source]
        getoption = staticmethod(options.get)

    assert schedule._is_chosen(Config()) is chosen  # type: ignore[arg-type]


def test_a_case_that_is_named_is_not_drawn(repo: Path, run_python: Callable[..., Any]) -> None:
    """Of a sweep that draws two, three cases run if they are named, and so does one that waits for the night."""
    ways = ("venv", "user", "uv")  # The first one is marked as nightly.
    names = ["tests/packaging/test_installing_page.py::test_the_words_of_the_page[%s]" % way for way in ways]
    done = run_python(["-m", "pytest", "-q", "-n", "0", "--collect-only", *names], cwd=repo)
    assert done.stdout.splitlines()[:3] == names


def test_tests_that_are_not_grouped_end_the_run() -> None:
    """If the ids that a worker has collected name no group, the run ends with a sentence that names the versions."""

    class Node:
        class config:  # noqa: N801  # as xdist names it
            getoption = staticmethod({"dist": "loadgroup"}.get)

    grouped = ["tests/read/test_x.py::test_a@tests/read/test_x.py", ROOM + "test_b"]
    schedule.pytest_xdist_node_collection_finished(Node(), grouped)
    with pytest.raises(pytest.exit.Exception, match="does not group tests under pytest"):
        schedule.pytest_xdist_node_collection_finished(Node(), [grouped[0].partition("@")[0]])
