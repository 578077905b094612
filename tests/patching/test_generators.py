"""Generators of ours: what a signal handler raises while one of them runs reaches the job as the handler raised it.

Python puts a RuntimeError in the place of a StopIteration that leaves a generator, and takes a StopIteration from a function that `map` or `filter`
calls for the end.
"""

import ast
import importlib
import signal
import sys
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

import ddp_probe
from ddp_probe.shared.ours import is_the_jobs, ours, suppress
from ddp_probe.traced.patching import Guard, Target
from ddp_probe.traced.patching.code_swap import Hooks, put_back, woven_swap
from ddp_probe.traced.patching.woven import SourceFiles

_PACKAGE = Path(ddp_probe.__file__).parent
_HOT = ("traced/ledger", "traced/facts/call_site.py", "traced/facts/process_groups.py", "shared/own_code.py", "shared/ours.py")
"""What runs at each collective, or asks whose an exception is: no generator at all."""
_OF_C = """
    int re.escape _CHECK.match _LAUNCHED.fullmatch _contents_of traceback_of hook _CALL attributes_of itertools.repeat
    dict.get operator.eq operator.add list id _PLACE value_of from_address c_void_p.from_address PyObj_FromPtr None
""".split()
"""What map calls, besides methods of modules that run as the package is imported: no Python function of ours, in which a handler could raise."""
_AT_START = ("traced/patching/woven.py",)
"""What is woven is made while the first group is made, under the guard."""


def _sources(*names: str) -> Iterator[Tuple[str, ast.Module]]:
    for name in names:
        place = _PACKAGE / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield path.relative_to(_PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def _functions(tree: ast.Module) -> List[Any]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]


def test_the_hot_path_has_no_generator() -> None:
    """No function that runs at each collective, or that asks whose an exception is, is a generator or has a generator expression."""
    found = []
    for name, tree in _sources(*_HOT):
        for function in _functions(tree):
            found += ["%s:%d" % (name, node.lineno) for node in ast.walk(function) if isinstance(node, (ast.GeneratorExp, ast.Yield, ast.YieldFrom))]
    assert found == []


def test_map_calls_nothing_in_which_a_handler_could_raise() -> None:
    """In a traced process `map` and `filter` are given functions in C alone, and iter() is given no function."""
    found = []
    for name, tree in _sources("traced", "activation", "shared"):
        for node in ast.walk(tree):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            mapped = called in ("map", "filter") and _words(node.args[0]) not in _OF_C
            if (mapped and name not in _AT_START) or (called == "iter" and len(node.args) > 1):
                found.append("%s:%d %s" % (name, node.lineno, _words(node.args[0])))
    assert found == []


def _words(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return "%s.%s" % (_words(node.value), node.attr)
    if isinstance(node, ast.Constant):
        return str(node.value)
    return node.id if isinstance(node, ast.Name) else ""


class StoppedError(StopIteration):
    """What the job's handler raises."""


@pytest.fixture
def interrupt(monkeypatch: Any) -> Iterator[Any]:
    """What lets a signal come, whose handler raises; faults of the probe are held back."""
    monkeypatch.delenv("DDP_PROBE_STRICT", raising=False)

    def handler(number: int, frame: Any) -> None:
        raise StoppedError("the job's")

    def send(*_: Any) -> bool:
        signal.raise_signal(signal.SIGUSR1)
        return False

    before = signal.signal(signal.SIGUSR1, handler)
    yield send
    signal.signal(signal.SIGUSR1, before)


def _in_our_file(source: str, **names: Any) -> Any:
    """Return the function of this source, compiled as if it stood in a file of the package."""
    exec(compile(source, Guard.attempt.__code__.co_filename, "exec"), names)
    return names["ours_runs"]


_ASKS = "def ours_runs(*_):\n  return any(send() for _ in range(3))\n"


def test_the_guard_raises_what_the_handler_has_raised(interrupt: Any) -> None:
    """A StopIteration that is raised in a generator below the guard is no fault of ours, and leaves as it was raised."""
    made = Guard()
    with pytest.raises(StoppedError, match="the job's") as raised:
        made.run("a", _in_our_file(_ASKS, send=interrupt))
    assert raised.value.__context__ is None
    assert made.counts == {}


def test_an_except_clause_lets_it_pass(interrupt: Any) -> None:
    """Neither `except ours(...)` nor `suppress` holds back what Python has put in the place of the handler's exception."""
    source = "def ours_runs():\n  try:\n    return any(send() for _ in range(3))\n  except ours(Exception):\n    return 'lost'\n"
    with pytest.raises(RuntimeError, match="raised StopIteration") as raised:
        _in_our_file(source, send=interrupt, ours=ours)()
    assert is_the_jobs(raised.value)
    source = "def ours_runs():\n  with suppress(Exception):\n    return any(send() for _ in range(3))\n"
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        _in_our_file(source, send=interrupt, suppress=suppress)()


_LIBRARY = """
def load(path):
    if not path:
        raise KeyError(path)
    return [path]
"""


@pytest.fixture
def woven(tmp_path: Path, monkeypatch: Any) -> Iterator[Any]:
    """What makes an installed module, and weaves hooks into its only function."""
    swaps = []

    def make(source: str, **hooks: Any) -> Any:
        place = tmp_path / "site-packages"
        place.mkdir()
        (place / "woven_library.py").write_text(source)
        monkeypatch.syspath_prepend(str(place))
        library = importlib.import_module("woven_library")
        around = Hooks(*[hooks.get(name, lambda *_: None) for name in Hooks._fields])
        swaps.append(woven_swap(Target("woven_library", "load"), library.load, around, [], SourceFiles()))
        swaps[-1].put_in()
        return library

    yield make
    sys.modules.pop("woven_library", None)
    assert [put_back(one).restored for one in swaps] == [True] * len(swaps)


def test_a_generator_of_the_jobs_is_the_jobs(interrupt: Any, woven: Any) -> None:
    """The RuntimeError of a generator in a watched function stays a RuntimeError, as without us."""
    library = woven("def load(send):\n    return any(send() for _ in range(3))\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="raised StopIteration"):
            library.load(interrupt)


@pytest.mark.parametrize("moment", ["begin", "end", "error"])
def test_a_woven_function_raises_what_the_handler_has_raised(moment: str, interrupt: Any, woven: Any) -> None:
    """A StopIteration that is raised in a generator of a hook leaves the function into which the hook is woven as it was raised."""
    library = woven(_LIBRARY, **{moment: _in_our_file(_ASKS, send=interrupt)})
    with pytest.raises(StoppedError, match="the job's"):
        library.load("" if moment == "error" else "a")
