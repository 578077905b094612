"""A dump of torch's Flight Recorder is read without running anything of it, whatever it claims to hold."""

import json
import os
import pickle
import random
import time
from pathlib import Path
from typing import Any, Dict

import pytest
from schedule import seed

from ddp_probe.reading import flight_recorder

FRAMES = [
    {"name": "all_reduce", "filename": "/torch/distributed/distributed_c10d.py", "line": 3245},
    {"name": "main", "filename": "/job/t.py", "line": 6},
]


def _dump(**more: Any) -> Dict[str, Any]:
    entry = {
        "frames": FRAMES,
        "record_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": 7,
        "profiling_name": "gloo:all_reduce",
        "time_created_ns": 1795336350228062011,
        "input_sizes": [[4, 3]],
        "state": "scheduled",
        "is_p2p": False,
        "time_discovered_started_ns": None,
        **more,
    }
    return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "", "ranks": "[0]"}}, "entries": [entry, dict(entry, collective_seq_id=8)]}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_plain_data_is_read(tmp_path: Path, protocol: int) -> None:
    """Every binary protocol gives the entries with group, number, operation, elements, state, time and stack."""
    (tmp_path / "nccl_trace_rank_3").write_bytes(pickle.dumps(_dump(), protocol))
    found = flight_recorder.read(flight_recorder.find([str(tmp_path)])[3], 3)
    assert found.problem == ""
    entry = found.entries[1]
    assert (entry.number, entry.group, entry.seq, entry.backend, entry.op, entry.elements) == (2, "0", 8, "gloo", "all_reduce", 12)
    assert (entry.state, entry.created_ns, entry.is_p2p) == ("scheduled", 1795336350228062011, False)
    assert [(frame.function, frame.line) for frame in entry.frames] == [("all_reduce", 3245), ("main", 6)]


def test_json_is_read(tmp_path: Path) -> None:
    """The JSON of newer torch, which has no stacks, gives the same entries without them."""
    dump = _dump()
    for entry in dump["entries"]:
        del entry["frames"]
    (tmp_path / "comm_lib_trace_rank_12.json").write_text(json.dumps(dump), encoding="utf-8")
    found = flight_recorder.read(flight_recorder.find([str(tmp_path)])[12], 12)
    assert (found.problem, len(found.entries), found.entries[0].frames, found.entries[0].elements) == ("", 2, (), 12)


@pytest.mark.slow
def test_the_dump_of_torch_is_read(run_python: Any, clean_env: Any, tmp_path: Path) -> None:
    """What the recorder of the installed torch writes is read entry by entry: its own C++ makes the pickle."""
    program = (
        "import os, sys, torch.distributed as dist, torch\n"
        "from torch._C import _distributed_c10d as c\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "dist.all_reduce(torch.ones(5)); dist.barrier()\n"
        "open(sys.argv[1], 'wb').write(c._dump_fr_trace()); open(sys.argv[2], 'wb').write(c._dump_fr_trace_json())\n"
        "dist.destroy_process_group()\n"
    )
    if "2.13" not in run_python(["-c", "import importlib.metadata as m; print(m.version('torch'))"], env=clean_env()).stdout:
        pytest.skip("this torch has no recorder for gloo")
    files = [str(tmp_path / "nccl_trace_rank_0"), str(tmp_path / "nccl_trace_rank_0.json")]
    done = run_python(["-c", program, *files], env=clean_env(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for file in files:
        found = flight_recorder.read(file, 0)
        assert (found.problem, [(entry.op, entry.seq) for entry in found.entries]) == ("", [("all_reduce", 1), ("barrier", 2)])
    assert flight_recorder.read(files[0], 0).entries[0].frames[-1].function == "<module>"


class _Runs:
    """Unpickled by pickle, it would run a command."""

    def __reduce__(self) -> Any:
        return os.system, ("echo run > ran",)


HOSTILE = {
    "a global that runs a command": pickle.dumps(dict(_dump(), more=_Runs())),
    "a global by its name": b"cos\nsystem\n(S'echo run > ran'\ntR.",
    "an object": b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01.",
    "a text of four gigabytes": b"\x80\x04X\xff\xff\xff\xffabc.",
    "a text of exabytes": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "an array that is made before it is filled": b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".",
    "a memo at a place far away": b"\x80\x02}r\xff\xff\xff\x7f.",
    "a hundred thousand lists in each other": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "marks without end": b"\x80\x02" + b"(" * 100_000 + b".",
    "a key that is a deep tuple": b"\x80\x02}(K\x01" + b"\x85" * 100_000 + b"K\x01u.",
    "no end": b"\x80\x02}",
    "nothing": b"",
    "a list that doubles": b"\x80\x02]q\x00" + b"(h\x00h\x00e" * 50_000 + b".",
    "JSON within JSON": b'{"entries": ' + b"[" * 100_000,
    "JSON of something else": b'{"entries": {"a": 1}}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Code, deep nesting and lengths that are not there give a sentence and no entries: nothing runs, and memory stays small."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(HOSTILE[name])
    found = flight_recorder.read(str(path), 0)
    assert found.entries == ()
    assert found.problem
    assert len(found.problem) < 200
    assert not (tmp_path / "ran").exists()


def _entries_of(data: bytes) -> Any:
    """Return the entries of a dump as Python reads it; our reader has read it to its end, so it holds plain types only."""
    return pickle.loads(data)["entries"]


def test_a_broken_pickle_is_never_an_exception(tmp_path: Path) -> None:
    """A dump with bytes changed, cut or doubled at random is read or refused, in less steps than it has bytes."""
    chance = random.Random(seed())
    whole = pickle.dumps(_dump(), 2)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path = tmp_path / "nccl_trace_rank_0"
        path.write_bytes(bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data))
        found = flight_recorder.read(str(path), 0)
        assert found.entries or found.problem or _entries_of(data) == []


def test_a_file_that_is_too_large_or_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump over the limit, a pipe, and a file that is gone are each a sentence, at once."""
    monkeypatch.setattr(flight_recorder, "MOST_BYTES", 1000)
    (tmp_path / "nccl_trace_rank_0").write_bytes(b"\x80\x02" + b"N" * 2000)
    (tmp_path / "nccl_trace_rank_1").write_bytes(b"{" + b" " * 2000)
    os.mkfifo(str(tmp_path / "nccl_trace_rank_2"))
    began = time.monotonic()
    problems = [flight_recorder.read(path, rank).problem for rank, path in sorted(flight_recorder.find([str(tmp_path)]).items())]
    assert [("more than 1000" in problem) for problem in problems] == [True, True, False]
    assert problems[2] == "it is not a regular file"
    assert flight_recorder.read(str(tmp_path / "nccl_trace_rank_9"), 9).problem == "No such file or directory"
    assert time.monotonic() - began < 60


def test_the_files_of_the_probe_are_not_taken_for_dumps(tmp_path: Path) -> None:
    """Logs, ledgers and stacks of ranks are not read as dumps; of two dumps of one rank the newer one counts."""
    for name in ("rank00000.node1.12.jsonl", "rank00000.node1.12.ledger", "rank00000.node1.12.stacks", "launcher.rank3.jsonl"):
        (tmp_path / name).write_bytes(b"")
    assert flight_recorder.find([str(tmp_path), str(tmp_path / "gone")]) == {}
    for name, when in (("old_rank_4", 100), ("new_rank4.pickle", 200)):
        (tmp_path / name).write_bytes(b"")
        os.utime(str(tmp_path / name), (when, when))
    assert flight_recorder.find([str(tmp_path)]) == {4: str(tmp_path / "new_rank4.pickle")}
