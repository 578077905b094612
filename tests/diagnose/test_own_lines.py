"""The line of the job at which a rank is, by its stacks: which of them are believed, and what several of them tell."""

import json
import os
import platform
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.reading.ledger_text import START, written
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.shared import schema

_LEDGERS = ("ledger 0-2 all_reduce 16 float32 at /job/train.py:12 x3", "ledger 0-1 all_reduce 16 float32 at /job/train.py:12 open")
_DUMP = """Timeout (0:01:00)!
Thread 0x00007f0000000001 (most recent call first):
  File "%s", line %d in %s
  File "/job/train.py", line 80 in <module>
"""
Look = Tuple[float, str, int, str]  # Seconds after the ledger began, file, line, function.
Judge = Callable[..., Finding]


def _event(look: Look, name: str, **fields: Any) -> str:
    seconds, file, line, function = look
    frames = [("/job/train.py", 80, "main"), (file, line, function), ("/env/lib/python3.11/threading.py", int(seconds), "wait")]
    threads = [{"name": "MainThread", "main": True, "frames": [{"file": one, "line": at, "function": of} for one, at, of in frames]}]
    return _line(name, 2, int((START + seconds) * 1e9), threads=threads, **fields)


def _line(name: str, rank: int, mono_ns: int, **fields: Any) -> str:
    return json.dumps({"event": name, "phase": "point", "rank": rank, "host": "node1", "mono_ns": mono_ns, **fields}, separators=(",", ":")) + "\n"


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Return a function that writes three ranks, of which rank 2 does not come and has left these stacks, and judges them; rank 0 has given up."""

    def judge_it(
        looks: List[Look],
        dump: str = "",
        dumped: float = 0.0,
        over: bool = False,
        name: str = "hang.suspected",
        moved: float = 0.0,
        calls: Sequence[str] = _LEDGERS,
        **fields: Any,
    ) -> Finding:
        ledgers = written(calls)
        ledgers[2] = written([_LEDGERS[0], *(["ledger 2 dataloader at /job/val.py:9 open"] if moved else [])], start=START + moved)[2]
        for rank, data in ledgers.items():
            log = tmp_path / ("rank%05d.node1.%d.jsonl" % (rank, rank))
            lines = [_line("process.start", rank, int((START - 9) * 1e9), world_size=3, pid=rank, environment={"DDP_PROBE_HANG_AFTER": "60"})]
            lines += (
                [_event(look, name, **fields) for look in looks]
                if rank == 2
                else [_line("hang.suspected", rank, int((START + 300) * 1e9), since=300)]
            )
            lines += [_line("hang.over", rank, int((START + 200) * 1e9))] if rank == 2 and over else []
            log.write_text("".join(lines))
            log.with_suffix(".ledger").write_bytes(data)
        if dump:
            file = tmp_path / "rank00002.node1.2.stacks"
            file.write_text(dump)
            os.utime(file, (START + dumped, START + dumped))
        (finding,) = [one for one in judge(load([str(tmp_path)])).findings if one.severity == "error" or one.slug == "rank-works-while-others-wait"]
        return finding

    return judge_it


def test_who_does_not_come_to_a_send_is_named_with_its_own_line(judged: Judge) -> None:
    """A rank that stands outside any call, while another waits to send to it, is named alone, and the remedy begins with where it stands."""
    looks = [(70.0, "/job/lock.py", 7, "acquire"), (130.0, "/job/lock.py", 7, "acquire")]
    finding = judged(looks, calls=(_LEDGERS[0], "ledger 0 send 4 float32 to 2 at /job/train.py:30 open"))
    assert (finding.slug, finding.ranks) == ("point-to-point-without-partner", [2])
    assert finding.remedy.startswith("Find out why rank 2 stays at /job/lock.py:7. If it should be there, it lacks a call. Match the send of rank 0 ")


def test_a_rank_that_stands_is_named_with_its_own_line(judged: Judge) -> None:
    """Two stacks at one line of the job, with other library lines below it, say that it stands there, and the evidence is the later one."""
    finding = judged([(70, "/job/lock.py", 7, "acquire"), (130, "/job/lock.py", 7, "acquire")])
    assert (finding.slug, finding.ranks) == ("rank-missing-from-collective", [2])
    assert "rank 2 is at /job/lock.py:7 in acquire for" in finding.verdict
    (shown,) = [one for one in finding.evidence if one.site is not None and one.site.line == 7]
    assert (Path(shown.file).name, shown.line) == ("rank00002.node1.2.jsonl", 3)


def test_a_rank_that_moves_is_slow_and_does_not_hang(judged: Judge) -> None:
    """Stacks at two lines are a warning that names both; the advice speaks of a loop as well."""
    finding = judged([(70, "/job/index.py", 7, "build"), (130, "/job/index.py", 9, "build")])
    assert (finding.slug, finding.severity, finding.ranks) == ("rank-works-while-others-wait", "warning", [2])
    assert "still running: at /job/index.py:7, then at /job/index.py:9 in build" in finding.verdict
    assert "loop" in finding.remedy


@pytest.mark.parametrize(("children", "slug"), [(9.0, "rank-works-while-others-wait"), (0.5, "rank-missing-from-collective")])
def test_a_rank_whose_processes_compute_is_slow(children: float, slug: str, judged: Judge) -> None:
    """A rank that waits in a library while processes of its own compute works; one whose processes sleep stands."""
    finding = judged([(120, "/job/model.py", 7, "compile")], still=110.0, children=children)
    assert (finding.slug, finding.ranks) == (slug, [2])


@pytest.mark.parametrize(("children", "slug"), [(9.0, "rank-works-while-others-wait"), (0.5, "rank-missing-from-collective")])
def test_a_rank_whose_workers_compute_is_slow(children: float, slug: str, judged: Judge) -> None:
    """A rank that waits for a batch while the workers of its DataLoader compute works; one whose workers are stuck stands."""
    finding = judged([(120, "/job/val.py", 9, "main")], moved=10.0, still=110.0, children=children)
    assert (finding.slug, finding.ranks) == (slug, [2])


@pytest.mark.parametrize("function", ["validate", "Trainer.evaluate", "save_checkpoint"])
def test_a_function_that_evaluates_or_saves_is_known_by_its_name(function: str, judged: Judge) -> None:
    """One stack in such a function is work that takes long, and no hang."""
    finding = judged([(70, "/job/val.py", 7, function)])
    assert (finding.slug, finding.cause) == ("rank-works-while-others-wait", "rank0_long_work_timeout")
    assert "at /job/val.py:7 in %s" % function in finding.verdict


@pytest.mark.parametrize("name", ["hang.suspected", "stacks"])
def test_a_stack_from_before_the_last_movement_is_not_believed(name: str, judged: Judge) -> None:
    """What was written before the ledger moved last says where the rank was: no line of it is named."""
    finding = judged([(0.001, "/job/val.py", 7, "validate")], name=name)
    assert finding.slug == "rank-missing-from-collective"
    assert "/job/val.py" not in str(finding)


@pytest.mark.parametrize(
    ("dumped", "over", "believed"),
    [(70.0, False, True), (-5.0, False, False), (1e6, False, True), (1e6, True, False)],
    ids=["in time", "too old", "copied", "copied, and over"],
)
def test_the_text_of_faulthandler_is_believed_by_its_time(dumped: float, over: bool, believed: bool, judged: Judge) -> None:
    """It counts if it is newer than the ledger; a copy has a later time, and counts unless a hang was over."""
    finding = judged([], _DUMP % ("/job/parse.py", 5, "parse"), dumped, over)
    assert ("rank 2 is at /job/parse.py:5 in parse, in C code that holds the GIL, for" in finding.verdict) == believed
    assert any(one.file.endswith(".stacks") for one in finding.evidence) == believed


def _seen_from_outside(tmp_path: Path, **fields: Any) -> None:
    """Let the launcher of the job write what it saw of rank 2, two minutes after the others began to wait."""
    line = {"event": "launcher.silent", "phase": "point", "host": "node1", "pid": 9, "mono_ns": int((START + 120) * 1e9)}
    (tmp_path / "launcher.node1.jsonl").write_text(json.dumps({**line, "child_rank": 2, "child_pid": 2, "since": 118.0, **fields}) + "\n")


@pytest.mark.parametrize("read", [True, False], ids=["with py-spy", "without"])
def test_a_rank_that_ran_while_none_of_its_python_code_did_holds_the_gil(read: bool, judged: Judge, tmp_path: Path) -> None:
    """By what its launcher saw, it is named with its line if py-spy could read that, else with its last call and how to find the line."""
    frames = [{"file": "/job/train.py", "line": 80, "function": "main"}, {"file": "/job/parse.py", "line": 5, "function": "parse"}]
    threads = [{"name": "MainThread", "main": True, "frames": frames}] if read else []
    _seen_from_outside(tmp_path, state="R", load=1.0, threads=threads)
    finding = judged([])
    assert (finding.slug, finding.cause, finding.ranks) == ("rank-missing-from-collective", "rank_stopped_participating", [2])
    if read:
        assert "rank 2 is at /job/parse.py:5 in parse, in C code that holds the GIL, for" in finding.verdict
    else:
        assert "rank 2 is in native code that holds the GIL: process 2 runs, and no Python code in it has since" in finding.verdict
        assert "python -m ddp_probe attach 2" in finding.remedy


def test_a_rank_that_was_seen_paused_was_stopped(judged: Judge, tmp_path: Path) -> None:
    """What the launcher saw while the job hung is known afterwards: the kernel did not let the process run."""
    _seen_from_outside(tmp_path, state="S", paused=True, wchan="do_freezer_trap")
    finding = judged([])
    assert (finding.slug, finding.ranks) == ("rank-does-not-run", [2])
    assert "was paused (process 2 was in state S)" in finding.verdict


def test_a_rank_that_nobody_saw_was_stopped_or_held_the_gil() -> None:
    """If its watcher alone is silent, the verdict says that it was one of two, and not which."""
    log = Path(__file__).parent.parent / "rules" / "rank-does-not-run" / "01-rank-2-is-silent-and-ranks-0-and-1-say-that-they.log"
    (finding,) = judge(from_lines(log.read_text().partition("\n\n")[2])).findings
    assert (finding.slug, finding.ranks, finding.confidence) == ("rank-does-not-run", [2], "medium")
    assert "it was stopped, or native code held the GIL" in finding.verdict


@pytest.mark.parametrize(("moved", "slug"), [(290.0, "rank-works-while-others-wait"), (10.0, "rank-missing-from-collective")])
def test_a_rank_whose_ledger_goes_on_is_slow(moved: float, slug: str, judged: Judge) -> None:
    """A rank that still took batches most of the time is told as slow, and one that has stood since as missing; without a stack too."""
    finding = judged([], moved=moved)
    assert (finding.slug, finding.ranks) == (slug, [2])
    assert "in the DataLoader, waiting for a batch at /job/val.py:9" in finding.verdict
    assert ("Rank 2 still moved at" in finding.verdict) == (moved > 100)


@pytest.mark.parametrize(("told", "waits"), [("5", True), ("2m", False), ("", False), ("off", False)])
def test_a_wait_counts_after_the_time_of_the_run(told: str, waits: bool) -> None:
    """A rank that waits for 30 s in a call is told if DDP_PROBE_HANG_AFTER of its run is shorter; else, and without a value, it may go on."""
    log = json.dumps({"event": "process.start", "rank": 0, "world_size": 2, "environment": {"DDP_PROBE_HANG_AFTER": told}})
    run = from_lines(log + "\nledger 0-1 barrier at /job/train.py:8 x2\nledger 0 barrier at /job/train.py:9 open")
    run.read_at = START + 30
    assert bool(judge(run).findings) == waits


@pytest.mark.parametrize(("ago", "found"), [(5.5, False), (6.5, True)])
def test_a_rank_that_moved_lately_may_come(ago: float, found: bool) -> None:
    """While its own watcher may not have looked where it stands, a rank that runs is not missing, though others wait for as long as is allowed."""
    log = "".join(_line("process.start", rank, 0, world_size=2, environment={"DDP_PROBE_HANG_AFTER": "5"}) for rank in (0, 1))
    log += "ledger 0-1 barrier at /job/train.py:8 x2\nledger 0 barrier at /job/train.py:9 open\nledger 1 optimizer at /job/train.py:7"
    run = from_lines(log)
    run.read_at = START + 0.03 + ago
    assert bool(judge(run).findings) == found


@pytest.mark.parametrize(("seconds", "runs", "late"), [(6.0, True, True), (4.0, True, False), (6.0, False, False)])
def test_a_rank_that_does_not_come_is_told_while_the_others_wait(seconds: float, runs: bool, late: bool) -> None:
    """Once a rank has waited in init_process_group for as long as DDP_PROBE_HANG_AFTER says, the ranks without a file are late; if it runs."""
    start = {"event": "process.start", "rank": 0, "world_size": 2, "environment": {"DDP_PROBE_HANG_AFTER": "5"}}
    joins = {"event": "dist.init_process_group", "phase": "begin", "rank": 0, "span": 1, "site": {"file": "/job/t.py", "line": 3, "function": "main"}}
    run = from_lines("\n".join(map(json.dumps, (start, joins))))
    run.running = {0} if runs else set()
    run.read_at = run.ranks[0].final(schema.InitProcessGroup).when + seconds
    found = [(one.ranks, one.verdict) for one in judge(run).findings if one.id == "DDP419"]
    told = "Rank 1 of 2 has not arrived: rank 0 has waited 6 s in init_process_group at /job/t.py:3."
    assert found == ([([1], told)] if late else [])


@pytest.mark.parametrize(("host", "severity"), [("", "warning"), ("elsewhere", "error")])
def test_a_rank_whose_process_runs_may_only_be_slow(host: str, severity: str) -> None:
    """A missing rank that its launcher has started and that runs is told with its process, as a warning; of another host nothing is known."""
    start = {"event": "process.start", "rank": 0, "world_size": 2, "environment": {"DDP_PROBE_HANG_AFTER": "5"}}
    joins = {"event": "dist.init_process_group", "phase": "begin", "rank": 0, "span": 1, "site": {"file": "/job/t.py", "line": 3, "function": "main"}}
    launcher: Dict[str, Any] = {"role": "launcher", "pid": 7, "host": host or platform.node()}
    children = {"0": 1, "1": os.getpid()}
    told = [{"event": "launcher.start"}, {"event": "launcher.group", "phase": "begin", "span": 1}]
    told.append({"event": "launcher.group", "phase": "end", "span": 1, "children": children})
    run = from_lines("\n".join(map(json.dumps, (start, joins, *({**one, **launcher} for one in told)))))
    run.running = {0}
    run.read_at = run.ranks[0].final(schema.InitProcessGroup).when + 6
    (found,) = judge(run).findings
    assert (found.id, found.ranks, found.severity) == ("DDP419", [1], severity)
    assert ("Its process (%d) runs and has written nothing: torch is not imported there yet" % os.getpid() in found.verdict) == (not host)
