"""From files to one launch: clocks of several hosts, restarts, deaths, and ranks that are missing."""

import json
from pathlib import Path
from typing import Callable

import pytest

from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.reading.log_lines import decode
from ddp_probe.shared import schema

Event = Callable[..., str]
WriteRun = Callable[..., Path]


def test_clocks_of_two_hosts_are_brought_together(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """A host whose clock is 100 seconds ahead is shifted on the moment that all ranks left init_process_group."""
    files = {}
    for rank, host, ahead in ((0, "node1", 0.0), (1, "node1", 0.001), (2, "node2", 100.0)):
        who = {"rank": rank, "world_size": 3, "host": host, "pid": 10 + rank}
        files["rank%05d.%s.%d.jsonl" % (rank, host, 10 + rank)] = [
            event("process.start", ahead, **who),
            event("dist.init_process_group", ahead + 1, phase="begin", span=1, **who),
            event("dist.init_process_group", ahead + 5, phase="end", span=1, **who),
            event("process.end", ahead + 9 + rank, **who),
        ]
    run = load([str(write_run(tmp_path / "r", files))])
    assert run.inventory.clock_spread == pytest.approx(100, abs=0.01)
    ends = [process.calls(schema.InitProcessGroup)[0].until for process in run.processes]
    assert max(ends) - min(ends) == pytest.approx(0, abs=0.01)
    assert [round(process.last_when - run.processes[0].last_when) for process in run.processes] == [0, 1, 2]


def test_hosts_without_a_common_event_are_told_of(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """If two hosts share no event, nothing is shifted and a note says so."""
    files = {"rank0000%d.node%d.1.jsonl" % (rank, rank): [event("process.start", 100.0 * rank, rank=rank, host="node%d" % rank)] for rank in (0, 1)}
    run = load([str(write_run(tmp_path / "r", files))])
    assert [round(process.start_when - run.processes[0].start_when) for process in run.processes] == [0, 100]
    assert len(run.inventory.notes) == 1
    assert "could not be aligned" in run.inventory.notes[0]


def test_wall_clock_that_was_set_back(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """Within a process the monotonic clock counts: a wall clock that is set while the job runs changes nothing."""
    lines = [event("process.start", 0, rank=0), event("process.end", 60, rank=0, ts="2026-01-01T09:00:00.000000Z")]
    process = load([str(write_run(tmp_path / "r", {"rank00000.node1.1.jsonl": lines}))]).processes[0]
    assert process.last_when - process.start_when == pytest.approx(60)


def test_generations(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """After a restart only the last generation is the run; the one before is kept apart, with its deaths."""
    files = {"launcher.node1.jsonl": [event("launcher.start", pid=1), event("launcher.agent", pid=1, nproc_per_node=2, nnodes="1:1")]}
    for generation in (0, 1):
        for rank in (0, 1):
            pid = 10 + 10 * generation + rank
            who = {"rank": rank, "local_rank": rank, "world_size": 2, "pid": pid}
            count = {"TORCHELASTIC_RESTART_COUNT": str(generation)}
            files["rank%05d.node1.%d.jsonl" % (rank, pid)] = [event("process.start", generation, environment=count, **who)]
    files["launcher.node1.jsonl"] += [
        event("launcher.child", 1, child_local_rank=0, child_pid=10, exit_code=1),
        event("launcher.child", 2, child_local_rank=1, child_pid=21, exit_code=-9, signal="SIGKILL", first=True),
    ]
    run = load([str(write_run(tmp_path / "r", files))])
    assert sorted(process.pid for process in run.processes) == [20, 21]
    assert sorted(process.pid for process in run.earlier) == [10, 11]
    assert [(death.rank, death.exit_code, death.signal, death.first) for death in run.deaths] == [(1, -9, "SIGKILL", True)]
    assert (run.ranks[1].exit_code, run.ranks[1].signal) == (-9, "SIGKILL")
    assert next(process for process in run.earlier if process.pid == 10).exit_code == 1


def test_death_of_a_rank_that_left_no_file(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """A rank that died before writing is missing, and its launcher reports how it ended."""
    files = {
        "launcher.node1.jsonl": [
            event("launcher.start", pid=1),
            event("launcher.agent", pid=1, nproc_per_node=2, nnodes="1:1"),
            event("launcher.child", 5, child_local_rank=1, child_pid=12, exit_code=-11, signal="SIGSEGV"),
        ],
        "rank00000.node1.11.jsonl": [event("process.start", rank=0, local_rank=0, world_size=2, pid=11)],
    }
    run = load([str(write_run(tmp_path / "r", files))])
    assert run.missing == [1]
    death = run.death(1)
    assert death is not None
    assert (death.exit_code, death.signal) == (-11, "SIGSEGV")


def test_launcher_alone_tells_how_many_there_should_be(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """If no rank wrote a file, the ranks requested from the launcher are missing."""
    files = {"launcher.node1.jsonl": [event("launcher.start", pid=1), event("launcher.agent", pid=1, nproc_per_node=4)]}
    assert load([str(write_run(tmp_path / "r", files))]).missing == [0, 1, 2, 3]


def test_call_without_an_end_is_where_a_rank_waits(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """A rank waits in the innermost call that began and did not return."""
    lines = [
        event("process.start", 0, rank=0),
        event("mmengine.wrap_model", 1, phase="begin", span=1, rank=0),
        event("ddp.init", 2, phase="begin", span=2, rank=0),
    ]
    process = load([str(write_run(tmp_path / "r", {"rank00000.node1.1.jsonl": lines}))]).processes[0]
    assert process.waiting is not None
    assert (process.waiting.name, process.waiting.at.line) == ("ddp.init", 3)


def test_first_failure_is_first(tmp_path: Path, event: Event, write_run: WriteRun) -> None:
    """Failures come by time, whatever the order of the ranks' files; a peer's loss is marked as one."""
    files = {}
    for rank, at, message in ((0, 9, "Connection closed by peer"), (1, 5, "out of range")):
        files["rank%05d.node1.%d.jsonl" % (rank, rank)] = [
            event("process.start", 0, rank=rank),
            event("process.end", at, rank=rank, exit_code=1, failure={"type": "RuntimeError", "message": message}),
        ]
    failures = load([str(write_run(tmp_path / "r", files))]).failures
    assert [(failure.rank, failure.consequence) for failure in failures] == [(1, ""), (0, "a peer is gone")]


def test_lines_at_hand_are_events_or_text() -> None:
    """An example is read as events if it begins with one, else as the output of a job."""
    assert sorted(from_lines('{"event":"process.start","rank":3}').ranks) == [3]
    assert [failure.type for failure in from_lines("ValueError: x").failures] == ["ValueError"]


@pytest.mark.parametrize("again", [True, False])
def test_a_line_that_a_signal_handler_cost_at_the_end_is_told_again(again: bool) -> None:
    """A gap in the last lines is none if they are written once more from the first; else a line is missing."""
    lines = [{"event": "process.start", "role": "rank"}, *({"event": "probe.coverage", "target": name} for name in ("a", "b"))]
    lines += [{"event": "module.move"}, *({"event": "probe.coverage", "target": name} for name in (("a", "b", "c") if again else ("c",)))]
    lines += [{"event": "process.end", "exit_code": 0}]
    numbers = [0, 1, 2, *range(4, 4 + len(lines) - 3)]  # The handler came while the third line of coverage was written.
    run = from_lines("\n".join(json.dumps({**line, "rank": 0, "world_size": 1, "seq": seq}) for seq, line in zip(numbers, lines)))
    assert (len(run.processes), run.whole) == (1, again)


@pytest.mark.parametrize("lost", ["coverage", "after", "before"])
def test_a_line_that_a_signal_handler_cost_at_the_end_may_be_the_coverage(lost: str) -> None:
    """A gap where coverage was about to be written, or right after it, is none if that is written again."""
    lines = [{"event": "process.start", "role": "rank"}, {"event": "module.move"}]
    lines += [{"event": "probe.coverage", "targets": [{"target": "a"}]}] * (1 if lost == "coverage" else 2)
    lines += [{"event": "process.end", "exit_code": 0}]
    numbers = {"coverage": [0, 1, 3, 4], "after": [0, 1, 2, 4, 5], "before": [0, 2, 3, 4, 5]}[lost]
    written = [{**line, "rank": 0, "world_size": 1, "seq": seq} for seq, line in zip(numbers, lines)]
    run = from_lines("\n".join(map(json.dumps, written)))
    assert (len(run.processes), run.whole) == (1, lost != "before")


def test_device_ids_of_older_logs_are_numbers():
    """Version 0.1.0 wrote device_ids as texts; what names no card stays a text."""
    ids = ["0", "cuda:1", "device(type='gcu', index=2)", "<Card>", "cpu"]
    line = json.dumps({"event": "ddp.init", "phase": "begin", "device_ids": ids})
    assert decode(line.encode()).event.device_ids == [0, 1, 2, "<Card>", "cpu"]
    changed = json.dumps({"event": "ddp.init", "phase": 7, "device_ids": ids})  # Another type of phase.
    assert decode(changed.encode()).event.device_ids == [0, 1, 2, "<Card>", "cpu"]
