"""DDP_PROBE_WATCH: the values of one statement are written each time its line is reached, and the function does what it did."""

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any, List

import pytest

from ddp_probe.shared import schema
from ddp_probe.traced.watched_line import WatchedLine

_SOURCE = '''
class Keeper:
    """Keeps the best."""

    def __init__(self):
        self.best = 7.0

    def keep(self, value, text="a private text"):
        if value < self.best:
            self.best = value
        turns = 0
        while turns < 2:
            turns += 1

        def half(number):
            return number / (value - 5)

        return half(self.best)


top = 1
'''
_IF, _WHILE, _INNER, _TOP = 9, 12, 16, 21


class _Recorder:
    def __init__(self) -> None:
        self.points: List[schema.LineReached] = []
        self.warnings: List[str] = []

    def point(self, event: schema.LineReached) -> None:
        self.points.append(event)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class _Process:
    rank = 0


class _Session:
    """As much of a session as a watched line asks for."""

    def __init__(self) -> None:
        self.recorder = _Recorder()
        self.process = _Process()


@pytest.fixture
def job(tmp_path: Path) -> Any:
    """A module of a job, imported from a file."""
    path = tmp_path / "watched_job.py"
    path.write_text(_SOURCE)
    spec = importlib.util.spec_from_file_location("watched_job", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Begin to watch a line of the module, and put all back in the end."""
    watched = []

    def begin(line: int) -> WatchedLine:
        monkeypatch.setenv("DDP_PROBE_WATCH", "%s:%d" % (tmp_path / "watched_job.py", line))
        session: Any = _Session()
        watched.append(WatchedLine(session))
        watched[-1].look_for_it()
        return watched[-1]

    yield begin
    for each in watched:
        each.undo()


def _written(watched: WatchedLine) -> Any:
    recorder: Any = watched._session.recorder
    return [(each.times, each.values) for each in recorder.points]


def test_the_values_are_written_each_time_the_line_is_reached(job: Any, watch: Any) -> None:
    """An `if` in a method is written with the numbers that it compares, and the method returns what it returned."""
    watched = watch(_IF)
    keeper = job.Keeper()
    assert [keeper.keep(value) for value in (6.0, 8.0)] == [6.0, 2.0]
    assert _written(watched) == [(1, {"value": "6.0", "self.best": "7.0"}), (2, {"value": "8.0", "self.best": "6.0"})]


def test_a_loop_is_written_before_each_turn(job: Any, watch: Any) -> None:
    """The condition of a `while` is watched each time it is asked."""
    watched = watch(_WHILE)
    job.Keeper().keep(8.0)
    assert [values for _, values in _written(watched)] == [{"turns": "0"}, {"turns": "1"}, {"turns": "2"}]


def test_a_function_in_a_function_is_watched_from_the_next_call_on(job: Any, watch: Any) -> None:
    """The line of an inner function is watched, and its traceback is the one that it has without the probe."""
    plain = _traceback(job)
    watched = watch(_INNER)
    assert _traceback(job) == plain
    assert _written(watched) == [(1, {"number": "5", "value": "5"})]


def _traceback(job: Any) -> str:
    with pytest.raises(ZeroDivisionError) as raised:
        job.Keeper().keep(5)
    return "".join(traceback.format_exception(raised.type, raised.value, raised.tb.tb_next))


def test_undo_puts_the_original_code_back(job: Any, watch: Any) -> None:
    """After restore the function has the very code object that it had, and nothing is written any more."""
    original = job.Keeper.keep.__code__
    watched = watch(_IF)
    entries = watched.undo()
    assert all(entry.restored for entry in entries)
    assert job.Keeper.keep.__code__ is original
    assert vars(job.Keeper.keep) == {}
    job.Keeper().keep(6.0)
    assert _written(watched) == []


def test_what_is_written_is_bounded(job: Any, watch: Any) -> None:
    """Of more than a thousand times only those that are powers of two are written."""
    watched = watch(_IF)
    keeper = job.Keeper()
    for _ in range(2100):
        keeper.keep(8.0)
    assert [times for times, _ in _written(watched)] == [*range(1, 1001), 1024, 2048]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring watches the code of a module too")
def test_a_line_that_cannot_be_watched_is_named(job: Any, watch: Any) -> None:
    """Before Python 3.12 a line outside of functions is not watched, and one line says so."""
    watched: Any = watch(_TOP)
    (said,) = watched._session.recorder.warnings
    assert "watched_job.py:%d is not watched: it is not in a function" % _TOP in said


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring asks no source for the code")
def test_source_that_has_changed_is_not_used(job: Any, watch: Any) -> None:
    """If the file is not what runs any more, the function stays as it is."""
    original = job.Keeper.keep.__code__
    Path(job.__file__).write_text(_SOURCE.replace("value - 5", "value - 6"))
    watched: Any = watch(_IF)
    assert job.Keeper.keep.__code__ is original
    assert "its source is not what runs" in watched._session.recorder.warnings[0]
