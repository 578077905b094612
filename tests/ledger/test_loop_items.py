"""The item of a loop around a call: what a real job leaves in its ledger, and what stands for an item."""

import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.reading import whole_ledger
from ddp_probe.shared import ledger_schema
from ddp_probe.traced.ledger.loop_items import Loop, LoopFinder, checksum, item_at

_PROGRAM = Path(__file__).parent / "programs" / "loops_over_names.py"


class Color(enum.Enum):
    """An enumeration of a job."""

    RED = 1


class Strange(str):
    """A text that answers for itself."""

    __slots__ = ()

    def encode(self, *_: Any) -> bytes:
        """Say that the job's code has run."""
        raise AssertionError("the job's code has run")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: Any, armed: Any, run_python: Any, free_port: Any) -> Any:
    """The output of the job, and the items of its calls by operation."""
    folder = tmp_path_factory.mktemp("loops")
    rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ended = run_python([str(_PROGRAM)], env=armed(folder / "runs", **rank), cwd=folder, timeout=200)
    assert ended.returncode == 0, ended.stderr
    (path,) = {path.resolve() for path in (folder / "runs").glob("*/rank*.ledger")}
    items: Dict[str, List[int]] = {}
    for record in whole_ledger.read(path).records:
        if not record.is_inner:
            items.setdefault(record.op, []).append(record.item)
    return ended.stdout, items


@pytest.mark.slow
def test_a_call_in_a_loop_over_names_has_its_item(ran: Any) -> None:
    """Calls in the loop itself, in a function that a comprehension calls, and for members of an enumeration have the item's checksum."""
    _, items = ran
    loss, size = checksum("loss"), checksum("size")
    assert items["all_reduce"] == [loss, size, size, loss, size]
    assert items["all_gather"] == [checksum("LOSS"), checksum("SIZE")]
    assert items["broadcast"] == [4, 1, 0]


@pytest.mark.slow
def test_a_loop_that_counts_has_no_items(ran: Any) -> None:
    """The numbers of range() and enumerate() are not recorded."""
    _, items = ran
    assert items["barrier"] == [0, 0, 0]
    assert items["reduce"] == [0, 0]


@pytest.mark.slow
def test_nothing_of_the_frame_is_held(ran: Any) -> None:
    """What the job deletes between two calls of a loop is gone although the loop's variables were read."""
    output, items = ran
    assert items["all_reduce_coalesced"] == [checksum("first"), checksum("second")]
    assert output.split() == ["held", "False"]


def test_what_has_a_checksum() -> None:
    """Texts, bytes, small numbers and members of an enumeration have one; what may answer for itself has none."""
    assert checksum("loss") == checksum(b"loss") >= ledger_schema.ITEM_IS_NAME
    assert checksum("loss") != checksum("size")
    assert checksum(Color.RED) == checksum("RED")
    assert [checksum(number) for number in (0, 1023, 1024, -1)] == [1, 1024, 0, 0]
    assert [checksum(value) for value in (None, 1.5, True, ("a",), Strange("a"), object())] == [0] * 6
    assert checksum("\ud800") >= ledger_schema.ITEM_IS_NAME


def test_the_seed_of_hashes_does_not_matter() -> None:
    """Two interpreters with different seeds give one name the same checksum."""
    program = "from ddp_probe.traced.ledger.loop_items import checksum; print(checksum('loss'))"
    said = set()
    for seed in ("1", "2"):
        environment = dict(os.environ, PYTHONHASHSEED=seed)
        said.add(subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True).stdout)
    assert said == {b"%d\n" % checksum("loss")}


def _found(finder: LoopFinder) -> Any:
    frame = sys._getframe(1)
    loop = finder.around(frame, lambda code: code.co_filename == __file__ and code.co_name.startswith("job"))
    return loop, item_at(loop, frame) if loop is not None else 0


def test_the_innermost_loop_over_names_counts() -> None:
    """Of two loops around a call, the inner one gives the item if it goes over names, and the outer one if the inner one counts."""

    def job_inner(finder: LoopFinder) -> List[Any]:
        found = []
        for outer in ("a", "b"):
            for inner in ("c",):
                found += [_found(finder), inner]
            for _ in range(2):
                found += [_found(finder), outer]
        return found[::2]

    found = job_inner(LoopFinder())
    assert [loop.variable for loop, _ in found] == ["inner", "outer", "outer"] * 2
    assert [item for _, item in found] == [checksum(name) for name in "caacbb"]


def test_a_loop_that_is_over_gives_no_item() -> None:
    """A call behind a loop, or in a function that looks at its own variables has no item."""

    def job_behind(finder: LoopFinder) -> Any:
        names = []
        for name in ("a",):
            names += [name]
        return _found(finder)

    def job_looks(finder: LoopFinder) -> Any:
        for name in ("a",):
            found = _found(finder), name, locals()
        return found[0]

    def job_looks_at_its_frame(finder: LoopFinder) -> Any:
        for name in ("a",):
            found = _found(finder), name, sys._getframe().f_locals
        return found[0]

    assert job_behind(LoopFinder()) == (None, 0)
    assert job_looks(LoopFinder()) == (None, 0)
    assert job_looks_at_its_frame(LoopFinder()) == (None, 0)


@pytest.mark.parametrize("hook", [sys.settrace, sys.setprofile])
def test_a_call_that_a_debugger_makes_costs_no_variable(hook: Any) -> None:
    """If a tracer or a profiler in Python asks for the item of the very loop that it has stopped in, the job keeps its variables."""
    found: List[Any] = []

    def job_in_debugger(names: List[str]) -> Any:
        total = 0
        for name in names:
            total += len(name)
        return total, name

    def stopped(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is job_in_debugger.__code__:
            found.append(item_at(Loop(0, "name", False), frame))
        return stopped

    before = sys.gettrace(), sys.getprofile()
    hook(stopped)
    try:
        answer = job_in_debugger(["a", "bc"])
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert answer == (3, "bc")
    assert len(found) >= 2


def test_a_variable_of_a_module_is_left_alone() -> None:
    """The variables of a module are not a copy, and none of them goes when an item is read there."""
    variables: Dict[str, Any] = {"seen": [], "sys": sys, "Loop": Loop, "item_at": item_at}
    program = "for name in ('a', 'b'):\n    seen.append(item_at(Loop(0, 'name', False), sys._getframe()))\n"
    exec(compile(program, "job.py", "exec"), variables)
    assert variables["seen"] == [checksum("a"), checksum("b")]
    assert variables["name"] == "b"
