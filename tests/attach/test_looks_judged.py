"""What two looks at each rank are judged to be: who waits, who may still come, and what is evidence."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load

_CALL = ("/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 3000, "all_reduce")


def _written(folder: Path, *looks: Dict[str, Any]) -> Any:
    """Judge a run in which each rank was seen twice at one line, in all_reduce unless `line` is another one; a pair has a value for each look."""
    folder.mkdir()
    for rank, more in enumerate(looks):
        line, inner = more.pop("line", 88), more.pop("inner", [])
        frames = [("/train/train.py", line, "main"), *([_CALL] if line == 88 else inner)]
        stack = [{"name": "MainThread", "main": True, "frames": [dict(zip(("file", "line", "function"), frame)) for frame in frames]}]
        who = {"rank": rank, "world_size": len(looks), "pid": 100 + rank, "host": "node1"}
        events = [{"event": "process.start", "phase": "point", "role": "looked at", **who}]
        for number in (1, 2):
            moment = {"number": number, "mono_ns": 10**12 + number * 10**9, "state": "S", "cpu_seconds": 1.0, "switches": 9, "threads": stack}
            events.append(
                {
                    "event": "process.look",
                    "phase": "point",
                    **who,
                    **moment,
                    **{k: v[number - 1] if isinstance(v, tuple) else v for k, v in more.items()},
                }
            )
        (folder / ("rank%05d.node1.%d.jsonl" % (rank, 100 + rank))).write_text("".join(json.dumps(event) + "\n" for event in events))
    return judge(load([str(folder)]))


def test_ranks_that_wait_beside_cards_are_told_to_ask_these(tmp_path: Path) -> None:
    """If all ranks wait in one call and have a card open, the next step is the vendor's tool; without a card it is not."""
    (question,) = _written(tmp_path / "with", {"cards": ["/dev/nvidia0"]}, {"cards": ["/dev/nvidia1"]}).undecided
    assert "nvidia-smi" in question.next
    (question,) = _written(tmp_path / "without", {}, {}).undecided
    assert "nvidia-smi" not in question.next


def test_ranks_that_stand_in_no_call_of_torch_are_told_so(tmp_path: Path) -> None:
    """If all ranks stand at one line outside torch.distributed, nothing is said of calls that differ."""
    (question,) = _written(tmp_path / "run", {"line": 7}, {"line": 7}).undecided
    assert "no rank is in a call of torch.distributed" in question.because
    assert "another call" not in question.because


def test_memory_at_its_limit_and_bytes_that_are_not_read_are_evidence(tmp_path: Path) -> None:
    """Of the rank that is waited for, the evidence says that its control group is full and how much of what was sent to it is not read."""
    full = {"memory": 1000 << 20, "memory_taken": 990 << 20, "memory_limit": 1000 << 20}
    there = {"line": 31, "system": full, "sockets": [{"peer": "10.0.0.1:5", "port": 6, "unread": 4096}]}
    (finding,) = _written(tmp_path / "run", {}, {}, there).findings
    assert (finding.slug, finding.ranks) == ("seen-elsewhere", [2])
    assert "990 MiB of 1000 MiB in use" in finding.evidence[0].text
    assert "4096 bytes sent to it not read" in finding.evidence[0].text


_TORCH = "/venv/lib/python3.11/site-packages/torch/"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"inner": [(_TORCH + "_inductor/async_compile.py", 5, "wait"), ("/lib/python3.11/threading.py", 9, "wait")]}, "in compile, which may end"),
        ({"inner": [(_TORCH + "serialization.py", 5, "save")]}, "in save, which may end"),
        ({"children_cpu": (1.0, 1.4)}, "processes that it has started compute"),
        ({"children_cpu": (1.0, 1.01), "inner": [("/lib/python3.11/subprocess.py", 9, "wait")]}, "processes that it has started compute"),
        ({"children_cpu": (1.0, 1.01)}, ""),
        ({"files": ([{"path": "/m.pt", "size": 1}], [{"path": "/m.pt", "size": 2}])}, "/m.pt, which it has open, moves on"),
        ({"switches": (9, 60)}, "woken 51 times a second"),
        ({"cpu_seconds": (1.0, 1.1)}, "its threads use 10% of a core"),
        ({}, ""),
    ],
)
def test_a_rank_that_may_come_is_a_warning(more: Dict[str, Any], why: str, tmp_path: Path) -> None:
    """A rank elsewhere is an error only if nothing shows that it may still come; what shows it is said."""
    (finding,) = _written(tmp_path / "run", {}, {}, {"line": 31, **more}).findings
    assert (finding.slug, finding.ranks, finding.severity) == ("seen-elsewhere", [2], "warning" if why else "error")
    assert why in finding.verdict


def test_threads_that_poll_do_not_hide_who_waits(tmp_path: Path) -> None:
    """A rank whose main thread sleeps in a call of torch waits, although threads of torch.distributed.rpc use some of a core."""
    polls = {"cpu_seconds": (1.0, 1.2)}
    (finding,) = _written(tmp_path / "run", polls, polls, {"line": 31}).findings
    assert (finding.slug, finding.ranks, finding.severity) == ("seen-elsewhere", [2], "error")
