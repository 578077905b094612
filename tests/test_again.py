"""A suite with --again passes after failures that do not come again, and after no others."""

import textwrap
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

_CONFTEST = """
import sys

sys.path.insert(0, {tests!r})
from again import Again

def pytest_configure(config):
    if not hasattr(config, "workerinput") and config.option.verbose >= 0:
        config.pluginmanager.register(Again())
"""
_TESTS = """
import pathlib

import pytest

def fails_until(number, name):
    with pathlib.Path(__file__).with_name(name).open("a+") as runs:
        runs.write("x")
        runs.seek(0)
        assert len(runs.read()) > number

@pytest.mark.parametrize("number", {numbers})
def test_it(number):
    fails_until(number, "runs-%d" % number)

def test_well():
    pass
"""


@pytest.fixture
def run_tests(tmp_path: Path, repo: Path, run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]]) -> Callable[..., Any]:
    """Run pytest in the folder of the test, with --again and with no plugin but the one for workers."""
    (tmp_path / "conftest.py").write_text(_CONFTEST.format(tests=str(repo / "tests")), encoding="utf-8")
    env = clean_env(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_PLUGINS="xdist.plugin")

    def run(*words: str) -> Any:
        return run_python(["-m", "pytest", "--rootdir", tmp_path, *words], env=env, cwd=tmp_path, timeout=200)

    return run


@pytest.mark.parametrize(
    ("numbers", "code", "runs"),
    [
        ([0], 0, {0: 1}),
        ([0, 1], 0, {1: 4}),
        ([2], 1, {2: 2}),
        ([1, 1000], 1, {1: 2, 1000: 2}),
        (list(range(1, 7)), 1, dict.fromkeys(range(1, 7), 1)),
    ],
    ids=["none", "once", "twice", "always", "many"],
)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_only_what_passes_three_times_is_forgiven(
    workers: str, numbers: Any, code: int, runs: Any, tmp_path: Path, run_tests: Callable[..., Any]
) -> None:
    """One failure is forgiven if three runs pass; a second failure, or more than five at first, is none that is forgiven."""
    (tmp_path / "test_it.py").write_text(textwrap.dedent(_TESTS).format(numbers=numbers), encoding="utf-8")
    done = run_tests("--dist", "loadgroup", "-n", workers, "test_it.py")
    assert done.returncode == code, done.stdout
    # What did not fail runs again if it was a neighbour.
    assert {number: len((tmp_path / ("runs-%d" % number)).read_text()) for number in runs} == runs
    assert ("failed once, then passed 3 times" in done.stdout) == (numbers == [0, 1])


_RACE = """
import pathlib
import time

def test_it():
    path = pathlib.Path(__file__).with_name("shared")
    path.write_text(__name__)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert path.read_text() in ("", __name__)
        time.sleep(0.01)
"""


def test_a_race_of_two_tests_is_not_forgiven(tmp_path: Path, run_tests: Callable[..., Any]) -> None:
    """Two tests that write one file by mistake pass by themselves, and still make the suite fail: they run again together."""
    for name in ("test_one.py", "test_other.py"):
        (tmp_path / name).write_text(_RACE, encoding="utf-8")
        assert run_tests("-q", "-n", "0", name).returncode == 0
    done = run_tests("--dist", "loadgroup", "-n", "2", ".")
    assert done.returncode == 1, done.stdout
    assert "--again: run 1 of 3" in done.stdout
    assert "--again: failed again" in done.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_promise_is_not_forgiven(workers: str, tmp_path: Path, run_tests: Callable[..., Any]) -> None:
    """A test of the contract that fails once makes the suite fail, is named, and is not run again."""
    room = tmp_path / "tests" / "contract"
    room.mkdir(parents=True)
    (room / "test_it.py").write_text(textwrap.dedent(_TESTS).format(numbers=[1]), encoding="utf-8")
    done = run_tests("-n", workers, "tests")
    assert done.returncode == 1, done.stdout
    assert "--again: not forgiven, as a promise is not: tests/contract/test_it.py::test_it[1]" in done.stdout
    assert (room / "runs-1").read_text() == "x"


def test_what_was_forgiven_is_not_forgiven_again(tmp_path: Path, run_tests: Callable[..., Any]) -> None:
    """A name that is forgiven is written down without its parameters, and what is written there makes the suite fail."""
    forgiven = tmp_path / ".ci" / "forgiven"
    forgiven.parent.mkdir()
    forgiven.write_text("test_other.py::test_it\n", encoding="utf-8")
    for number, code in ((1, 0), (2, 1)):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(_TESTS).format(numbers=[number]), encoding="utf-8")
        (tmp_path / ("runs-%d" % number)).write_text("x" * (number - 1))
        done = run_tests("-n", "0", "test_it.py")
        assert done.returncode == code, done.stdout
    assert "--again: not forgiven a second time (.ci/forgiven): test_it.py::test_it[2]" in done.stdout
    assert (tmp_path / "runs-2").read_text() == "xx"
    assert forgiven.read_text(encoding="utf-8") == "test_it.py::test_it\ntest_other.py::test_it\n"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_file_that_cannot_be_read_is_no_failed_test(workers: str, tmp_path: Path, run_tests: Callable[..., Any]) -> None:
    """Beside a test that fails once, a file that cannot be imported still makes the suite fail."""
    (tmp_path / "test_it.py").write_text(textwrap.dedent(_TESTS).format(numbers=[1]), encoding="utf-8")
    (tmp_path / "test_broken.py").write_text("import no_such_module\n", encoding="utf-8")
    done = run_tests("-n", workers, "--continue-on-collection-errors", ".")
    assert done.returncode == 1, done.stdout
    assert "passed 3 times" not in done.stdout
