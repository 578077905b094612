"""What is of one launch is read as one run, and what is of two is not."""

from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing import brief_form

Write = Callable[[Path, Dict[str, List[str]]], Path]
Event = Callable[..., str]


@pytest.fixture
def node(tmp_path: Path, event: Event, write_run: Write) -> Callable[..., Path]:
    """The folder of one torchrun of two nodes: its launcher, and two of four ranks."""

    def write(number: int, at: float = 0.0, port: str = "29500", host: str = "", job: str = "job", folder: str = "", ended: bool = True) -> Path:
        host = host or "node%d" % number
        name = folder or "run-%d-%s-%d" % (number, port, at)
        known: Dict[str, Any] = {"host": host, "run": name}
        files = {
            "launcher.%s.jsonl" % host: [
                event("launcher.start", at, **known, pid=50 + number, launcher="torchrun"),
                event(
                    "launcher.agent",
                    at,
                    **known,
                    pid=50 + number,
                    phase="begin",
                    span=1,
                    nproc_per_node=2,
                    nnodes="2:2",
                    rendezvous={"endpoint": "node0:" + port, "id": job, "backend": "c10d"},
                ),
                *([event("launcher.end", at + 9, **known, pid=50 + number)] if ended else []),
            ]
        }
        for local in (0, 1):
            rank = 2 * number + local
            env = {"MASTER_ADDR": "node0", "MASTER_PORT": port, "GROUP_RANK": str(number), "GROUP_WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
            who = {**known, "rank": rank, "local_rank": local, "world_size": 4, "pid": 100 + rank}
            files["rank%05d.%s.%d.jsonl" % (rank, host, 100 + rank)] = [
                event("process.start", at + 1, **who, environment=env),
                *([event("process.end", at + 8, **who)] if ended else []),
            ]
        return write_run(tmp_path / name, files)

    return write


def test_torchruns_of_one_rendezvous_are_one_run(node: Callable[..., Path]) -> None:
    """Two torchruns on one file system write one folder each; naming either folder reads both, and no rank of them is missing."""
    first, second = node(0), node(1, at=2.0)
    for one in (first, second):
        run = load([str(one)])
        assert sorted(run.ranks) == [0, 1, 2, 3]
        assert (run.missing, run.elsewhere, len(run.launchers)) == ([], [], 2)
        assert run.folders == [str(first), str(second)]


@pytest.mark.parametrize(
    "other",
    [{"port": "29501"}, {"at": 900.0}, {"at": 60.0}, {"number": 0, "at": 2.0, "host": "node7"}],
    ids=["port", "later", "after the end", "same ranks"],
)
def test_another_launch_is_not_taken_in(node: Callable[..., Path], other: Dict[str, Any]) -> None:
    """A folder of another rendezvous, of another time, or of the same ranks is another launch, also if both are named."""
    first = node(0)
    second = node(**{"number": 1, **other})
    assert sorted(load([str(first)]).ranks) == [0, 1]
    if "at" not in other or other.get("number") == 0:
        both = load([str(first), str(second)])
        assert len(both.ranks) == 2
        assert "these files are from 2 launches" in both.inventory.notes[0]


def test_what_one_node_cannot_see(node: Callable[..., Path]) -> None:
    """Ranks of a host of which no file is here are not called missing, the run is not clear, and both forms say what to name."""
    run = load([str(node(0))])
    assert (run.missing, run.elsewhere) == ([], [2, 3])
    diagnosis = judge(run)
    assert diagnosis.verdict == "undecided"
    first, last = brief_form.lines(diagnosis)
    assert "Ranks 2-3 are on other hosts, without a file here" in first
    assert last.startswith("not seen: ")
    assert last.endswith("python -m ddp_probe report %s" % (Path(run.folders[0]).parent / "2*"))


def _program(event: Event, rank: int, **init: str) -> Dict[str, List[str]]:
    """One program of its own on a host of its own, which started one rank of two."""
    known = {"host": "node%d" % rank, "run": "run-%d" % rank}
    who = {**known, "rank": rank, "world_size": 2, "pid": 100 + rank, "ppid": 50}
    return {
        "launcher.node%d.jsonl" % rank: [event("launcher.start", 0, **known, pid=50, launcher="spawn"), event("launcher.end", 9, **known, pid=50)],
        "rank%05d.node%d.jsonl" % (rank, rank): [
            event("process.start", 1, **who, role="promoted"),
            event("dist.init_process_group", 1, **who, phase="begin", span=1, **init),
            event("process.end", 8, **who),
        ],
    }


@pytest.mark.parametrize(
    ("one", "other", "alone", "named"),
    [
        ({"init_method": "tcp://node0:29500"}, {"init_method": "tcp://node0:29500?use_libuv=0"}, 2, 2),
        ({"init_method": "env://", "master_addr": "node0", "master_port": "29500"}, {"master_addr": "node0", "master_port": "29500"}, 2, 2),
        ({"init_method": "tcp://node0:29500"}, {"init_method": "tcp://node0:29501"}, 1, 1),
        ({"init_method": "file:///shared/meet"}, {"init_method": "file:///shared/meet"}, 1, 2),
    ],
    ids=["tcp", "set before the call", "another port", "no address"],
)
def test_programs_on_several_hosts(
    tmp_path: Path, event: Event, write_run: Write, one: Dict[str, str], other: Dict[str, str], alone: int, named: int
) -> None:
    """Programs that start the ranks of their own host are one run if the process groups met at one address, or if they are named together."""
    first = write_run(tmp_path / "run-0", _program(event, 0, **one))
    second = write_run(tmp_path / "run-1", _program(event, 1, **other))
    assert (len(load([str(first)]).ranks), len(load([str(first), str(second)]).ranks)) == (alone, named)


def test_a_program_that_learns_its_rank_late(tmp_path: Path, event: Event, write_run: Write) -> None:
    """Lightning's program on the second host takes itself for rank 0 until the process group tells: it is one run with the first host's."""
    env = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
    for rank in (0, 1):
        who = {"host": "node%d" % rank, "run": "run-%d" % rank, "pid": 100 + rank}
        lines = [
            event("process.start", 1, **who, rank=0, role="solo", environment=env),
            event("process.end", 8, **who, rank=rank, world_size=2),
        ]
        write_run(tmp_path / ("run-%d" % rank), {"rank00000.node%d.%d.jsonl" % (rank, 100 + rank): lines})
    assert sorted(load([str(tmp_path / "run-1")]).ranks) == [0, 1]


def _jobs(event: Event, count: int, bad: int) -> Dict[str, List[str]]:
    """One launcher that starts two ranks, again and again; of one job a rank fails."""
    files = {"launcher.node1.jsonl": [event("launcher.start", 0, pid=9, launcher="spawn")]}
    for job in range(count):
        for rank in (0, 1):
            who = {"rank": rank, "world_size": 2, "pid": 100 + 2 * job + rank, "ppid": 9}
            failed = (
                {"uncaught": True, "exit_code": 1, "failure": {"type": "ValueError", "message": "job %d" % job}} if (job, rank) == (bad, 1) else {}
            )
            files["rank%05d.node1.%d.jsonl" % (rank, who["pid"])] = [
                event("process.start", 10.0 * job + 0.1 * (1 - rank), **who, role="promoted"),
                event("process.end", 10.0 * job + 5, **who, **failed),
            ]
    return files


def test_small_jobs_of_one_program_are_not_one_big_one(tmp_path: Path, event: Event, write_run: Write) -> None:
    """Twelve jobs of two ranks in one folder are twelve launches; the report is about the last that did not end well, and names the rest."""
    folder = str(write_run(tmp_path / "r", _jobs(event, 12, bad=4)))
    run = load([folder])
    assert [process.pid for process in run.processes] == [108, 109]
    assert run.expected == 2
    assert "12 launches; this is number 5, the last that did not end well" in run.inventory.notes[0]
    assert [process.pid for process in load([folder + ":12"]).processes] == [122, 123]


def test_jobs_that_all_went_well(tmp_path: Path, event: Event, write_run: Write) -> None:
    """If all of them ended well, the report is about the newest."""
    run = load([str(write_run(tmp_path / "r", _jobs(event, 3, bad=-1)))])
    assert [process.pid for process in run.processes] == [104, 105]
    assert "this is number 3, the newest" in run.inventory.notes[0]


def test_two_processes_of_one_rank_at_a_time_are_one_launch(tmp_path: Path, event: Event, write_run: Write) -> None:
    """A rank that two processes took for theirs at the same time is a fault of one launch, not two launches."""
    files = {
        "rank00000.node1.%d.jsonl" % pid: [event("process.start", 0.1 * pid, rank=0, world_size=2, pid=pid), event("process.end", 9, rank=0, pid=pid)]
        for pid in (1, 2)
    }
    assert len(load([str(write_run(tmp_path / "r", files))]).processes) == 2
