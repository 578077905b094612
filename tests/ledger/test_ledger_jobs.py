"""The ledgers of real jobs: two ranks that call everything, one that restores, forks, and jobs without."""

import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from ddp_probe.reading import ledger_file, whole_ledger

pytestmark = pytest.mark.slow
_PROGRAMS = Path(__file__).parent / "programs"
_EVERY = _PROGRAMS / "every_operation.py"


@pytest.fixture(scope="module")
def both(tmp_path_factory: Any, armed: Any, run_python: Any, free_port: Any) -> Tuple[List[whole_ledger.Ledger], List[List[str]]]:
    """The ledgers of two ranks that call every operation, and what they say they have called."""
    folder = tmp_path_factory.mktemp("every")
    where = ["--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % free_port()]
    done = run_python(["-m", "torch.distributed.run", *where, str(_EVERY)], env=armed(folder / "runs"), cwd=folder, timeout=240)
    assert done.returncode == 0, done.stderr
    paths = _files(folder / "runs", ".ledger")
    return [whole_ledger.read(path) for path in paths], [json.loads((folder / ("called%d.json" % rank)).read_text()) for rank in (0, 1)]


def _files(root: Path, end: str) -> List[Path]:
    """Return the files of all ranks; `latest` leads to a run's folder as well."""
    return sorted({path.resolve() for path in root.glob("*/rank*" + end)})


def _outer(found: whole_ledger.Ledger) -> List[whole_ledger.Record]:
    return [one for one in found.records if not one.is_inner]


def test_every_operation_leaves_a_record(both: Any) -> None:
    """Each call of the program is in the ledger of its rank, in order."""
    for found, called in zip(*both):
        assert (found.problem, found.torn) == ("", 0)
        ops = [one.op for one in _outer(found)]
        rest = iter(ops)
        assert all(name in rest for name in called), (called, ops)


def test_headers_tell_the_ranks_apart(both: Any) -> None:
    """Each header has its rank, the number of ranks, and a time of the latest change that is that of the last record."""
    for rank, found in enumerate(both[0]):
        assert (found.header.rank, found.header.world_size) == (rank, 2)
        assert found.header.moved_ns >= max(one.left_ns for one in found.records)


def test_groups_and_numbers_agree_between_ranks(both: Any) -> None:
    """Both ranks know the same groups by the same ids, and number the same collectives alike."""
    one, two = both[0]
    assert [group.id for group in one.groups] == [group.id for group in two.groups]
    assert [(group.ranks, group.nth) for group in one.groups] == [("0-1", 1), ("0-1", 2)]
    first, second = (
        [
            (call.op, call.group.id, call.seq, call.peer)
            for call in _outer(found)
            if call.group and call.op[:5] not in ("send", "recv", "isend", "irecv")
        ]
        for found in both[0]
    )
    only = ("send", "recv", "isend", "irecv", "send_object_list", "recv_object_list")
    assert [call for call in first if call[0] not in only] == [call for call in second if call[0] not in only]


def test_the_text_of_a_real_ledger_is_the_ledger(both: Any) -> None:
    """A ledger turned into lines and back is the same to the byte, and the lines are a small part of its size."""
    for found in both[0]:
        data = Path(found.path).read_bytes()
        text = ledger_file.as_lines(data).encode()
        assert ledger_file.of_lines(text) == data
        assert whole_ledger.parse(text, found.path) == found
        assert len(text) < len(data) / 4


def test_call_sites_are_the_lines_of_the_job(both: Any) -> None:
    """Each record names the line of the program that made the call, also through the decorators of torch and for inner calls."""
    lines = [""] + _EVERY.read_text().splitlines()
    for one in both[0][0].records:
        assert one.site is not None, one
        assert one.site.file == str(_EVERY), one
        told = lines[one.site.line]
        assert one.is_inner or one.op in told or "getattr(c10d, name)" in told or one.op in ("isend", "irecv"), (one, told)


def test_arguments_are_described(both: Any) -> None:
    """Element counts, data types, devices, numbers of tensors, roots and groups are those of the call."""
    one, rank = {call.op: call for call in reversed(_outer(both[0][0]))}, 0
    assert (one["broadcast"].elements, one["broadcast"].dtype, one["broadcast"].peer, one["broadcast"].device) == (5, "int64", 1, "cpu")
    assert one["broadcast"].group == both[0][0].groups[1]
    assert (one["all_reduce_coalesced"].elements, one["all_reduce_coalesced"].tensors) == (7, 2)
    assert (one["gather"].peer, one["scatter"].peer, one["send"].peer, one["barrier"].peer) == (0, 1, 1 - rank, -1)


def test_asynchronous_work_is_open_until_its_wait_returns(both: Any) -> None:
    """Work that was waited for, asked for, and thrown away ends as returned, returned and dropped, and as returned if its future was taken."""
    for found in both[0]:
        works = [one for one in _outer(found) if one.op == "all_reduce" and one.is_async]
        assert [one.state for one in works] == ["returned", "returned", "dropped", "returned"]
        assert [one.waited_ns > 0 for one in works] == [True, False, False, False]
        pairs = [one for one in _outer(found) if one.op in ("isend", "irecv")]
        assert pairs
        assert {one.state for one in pairs} == {"returned"}


def test_calls_inside_calls_are_marked(both: Any) -> None:
    """What an object collective does inside is recorded with the number of the outer call, and does not count in the group."""
    found = both[0][0]
    outer = next(one for one in found.records if one.op == "broadcast_object_list")
    inner = [one for one in found.records if one.outer == outer.number]
    assert [(one.op, one.is_inner, one.seq) for one in inner] == [("broadcast", True, 1), ("broadcast", True, 2)]
    numbers = [
        one.seq for one in _outer(found) if one.group == found.groups[0] and one.op in ("all_reduce", "barrier", "gather", "scatter", "reduce")
    ]
    assert numbers == sorted(set(numbers))


def test_restore_takes_the_ledger_out(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """After restore() each code object and method is the one from before, by identity, nothing is mapped; a fork had left its parent's file alone."""
    done = run_python([str(_PROGRAMS / "restored.py")], env=armed(None, DDP_PROBE_DIR=str(tmp_path)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "swapped True mapped True 2",
        "child 0",
        "records 0 phases []",
        "restored True [] [] (0, 0)",
        "tracebacks True True",
        "closed True",
    ], done.stdout + done.stderr


def test_a_fork_that_becomes_a_rank_has_its_own_ledger(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """A forked child that makes a process group opens a ledger of its own, and its parent's goes on without its calls."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAMS / "becomes_a_rank.py")], env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ops = sorted([one.op for one in _outer(whole_ledger.read(path))] for path in _files(tmp_path / "runs", ".ledger"))
    assert ops == [["init_process_group", "all_reduce"], ["init_process_group", "barrier", "destroy_process_group"] * 2]


@pytest.mark.parametrize("program", ["import torch; torch.save(1, 'x')", "off"])
def test_no_ledger_without_need(program: str, armed: Any, run_python: Any, tmp_path: Path) -> None:
    """A program that makes no process group has no ledger, nor has one with DDP_PROBE_LEDGER=off."""
    off: Dict[str, str] = {"DDP_PROBE_LEDGER": "off"} if program == "off" else {}
    command = [str(_PROGRAMS / "becomes_a_rank.py")] if program == "off" else program
    done = run_python(command, env=armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", **off), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert _files(tmp_path / "runs", ".jsonl")
    assert not list(tmp_path.rglob("*.ledger"))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="torch 1.12 has no torch.compile")
def test_compiled_graphs_are_the_same(armed: Callable[..., Dict[str, str]], run_python: Any, tmp_path: Path) -> None:
    """torch.compile of functions with collectives gives the same graphs, breaks and results, and the functions say the same of themselves."""
    program = [str(_PROGRAMS / "same_graphs.py")]
    plain = run_python(program, env=armed(None), cwd=tmp_path, timeout=240)
    watched = run_python(program, env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=240)
    assert plain.returncode == watched.returncode == 0, plain.stderr + watched.stderr
    assert watched.stdout == plain.stdout
    assert watched.stderr == plain.stderr
    (path,) = _files(tmp_path / "runs", ".ledger")
    assert len(whole_ledger.read(path).records) > 8


def test_a_record_costs_a_few_microseconds(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """Begin and end of a record cost less than forty plain calls of a function through a decorator, and no fault was counted."""
    done = run_python([str(_PROGRAMS / "costs.py")], env=armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    told = json.loads(done.stdout)
    assert told["record_us"] < 40 * told["plain_us"], told
    assert told["phase_us"] < 30 * told["plain_us"], told
    assert "probe.fault" not in _files(tmp_path / "runs", ".jsonl")[0].read_text()


def test_calls_of_a_signals_handler(run_python: Any, armed: Any, tmp_path: Path) -> None:
    """A call that is made in a handler has the number of the signal, also the second time; one of the same function without a signal has none."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAMS / "in_a_handler.py")], env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    found = whole_ledger.read(_files(tmp_path / "runs", ".ledger")[0])
    assert str([one.signal for one in _outer(found) if one.op in ("all_reduce", "barrier")]) == done.stdout.strip()
