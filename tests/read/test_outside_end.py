"""A signal from outside: it is found in what was written, and the ranks are taken as they stood before it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any, List, Optional

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading import fold, ledger_file, ledger_text, rank_ledger, whole_ledger
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.reading.model import Run
from ddp_probe.shared import ledger_codec as codec

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "jobs"), str(TESTS / "hangs")]

from registry import JOBS, Job, label  # noqa: E402  # found from the checkout
from test_jobs_live import HANGS  # noqa: E402

_PATIENCE = {"DDP_PROBE_HANG_AFTER": "5"}
_STARTED = ledger_text.START
_ENDED = _STARTED + 20

# Rank 1 skips an all_reduce. Both wake 30 s later, when the signal has come, and what handles the signal makes a broadcast.
HANG = (
    "ledger 0-1 all_reduce 4 float32 at train.py:3",
    "ledger 0 all_reduce 4 float32 at train.py:5 takes 30000 raised",
    "ledger 1 barrier at train.py:9 takes 30000 raised",
    "ledger 0-1 broadcast 7 int64 root 0 at handler.py:1 after 31000",
)
HANGING = (HANG[0], "ledger 0 all_reduce 4 float32 at train.py:5 open", "ledger 1 barrier at train.py:9 open")


def _line(name: str, rank: Optional[int] = None, at: float = 0.0, **fields: Any) -> str:
    own = {"rank": rank, "pid": 100 + rank, "world_size": 2} if rank is not None else {"pid": 1}
    return json.dumps({"event": name, "mono_ns": int((_STARTED + at) * 1e9), **own, **fields})


STARTS = [*(_line("process.start", rank, environment=_PATIENCE) for rank in (0, 1)), _line("launcher.start", launcher="torchrun")]
STOPPED = _line("launcher.signal", at=20, signal="SIGTERM")


def _interrupted(rank: int, at: float, **fields: Any) -> str:
    return _line("process.end", rank, at, exit_code=1, uncaught=True, failure={"type": "KeyboardInterrupt", "message": ""}, **fields)


def _generation(rank: int, at: float, number: int) -> str:
    return _line("process.start", rank, at, launcher="torchrun", environment={"TORCHELASTIC_RESTART_COUNT": str(number)})


def _ended(*lines: str) -> Run:
    """Return a run of which no process runs any more."""
    run = from_lines("\n".join([*lines]))
    run.running.clear()
    return run


def _said(run: Run) -> List[Any]:
    return [(finding.slug, finding.ranks, finding.verdict) for finding in judge(run).findings]


def _cut(lines: List[str], until: float) -> whole_ledger.Ledger:
    return whole_ledger.parse(rank_ledger.as_of("x", ledger_text.written(lines)[0], until) or b"", "x")


CALLS = [
    "ledger 0 all_reduce 4 float32 at a.py:1 takes 3",
    "ledger 0 backward at a.py:2",
    "ledger 0 broadcast 4 float32 root 0 at a.py:3 async",
    "ledger 0 barrier at a.py:4",
    "ledger 0 dataloader at a.py:5",
    "ledger 0 validate at a.py:7",
    "ledger 0 all_reduce 9 int64 at a.py:6",
]


@pytest.mark.parametrize("count", range(1, len(CALLS)))
def test_a_ledger_as_it_was(count: int) -> None:
    """A ledger as it was between two calls holds what it held between them, and has moved no later."""
    between = _STARTED + (count + 0.9) * 0.01
    (data,) = ledger_text.written(CALLS[:count]).values()
    then, found = whole_ledger.parse(data, "x"), _cut(CALLS, between)
    assert [record._replace(group=None) for record in found.records] == [record._replace(group=None) for record in then.records]
    assert {phase.name: (phase.times, phase.state) for phase in found.phases} == {phase.name: (phase.times, phase.state) for phase in then.phases}
    assert found.header is not None
    assert found.header.moved_ns <= between * 1e9


@pytest.mark.parametrize(
    ("words", "state"),
    [("barrier at a.py:4 takes 30000", "open"), ("barrier at a.py:4 takes 30000 raised", "open"), ("barrier at a.py:4", "returned")],
)
def test_a_call_that_ended_later_is_open(words: str, state: str) -> None:
    """A call that returned or raised after the moment is open, and one that returned before it is not."""
    (record,) = _cut(["ledger 0 barrier at a.py:4 " + words], _ENDED).records
    assert record.state == state


def test_a_phase_that_ended_later_is_open() -> None:
    """A phase that a later entry replaced is known to have ended, without its time; one that had not begun is gone."""
    lines = ["ledger 0 backward at a.py:2", "ledger 0 backward at a.py:2", "ledger 0 validate at a.py:3"]
    (phase,) = _cut(lines, _STARTED + 0.015).phases
    assert (phase.name, phase.times, phase.is_open) == ("backward", 1, False)


def test_a_call_that_was_issued_is_not_over() -> None:
    """A call that returned work is issued and not waited for, although its work ended and was waited for after the moment."""
    (data,) = ledger_text.written(["ledger 0 all_reduce 4 float32 at a.py:1 async takes 30000"]).values()
    head = codec.HEADER.read(data)
    changed = bytearray(data)
    place = codec.places(head).records + codec.RECORD.size
    entered = codec.RECORD.read_field(changed, place, "entered_ns")
    codec.RECORD.write_field(changed, place, "waited_ns", entered + 25 * 10**9)
    (record,) = whole_ledger.parse(rank_ledger.as_of("x", bytes(changed), _ENDED) or b"", "x").records
    assert (record.state, record.is_async, record.waited_ns) == ("open", True, 0)
    assert record.left_ns == record.entered_ns


def test_a_ledger_as_text_is_cut_too() -> None:
    """A ledger in the form of lines gives the same as its bytes."""
    (data,) = ledger_text.written(CALLS).values()
    assert rank_ledger.as_of("x", ledger_file.as_lines(data).encode(), _STARTED + 0.045) == rank_ledger.as_of("x", data, _STARTED + 0.045)


def test_a_launcher_that_was_told_to_stop_does_not_change_the_verdict() -> None:
    """The finding of a hang, its ranks and its lines are the same after the launcher got a signal and the ranks woke and made other calls."""
    hung = from_lines("\n".join([*STARTS, *HANGING]))
    hung.read_at = _ENDED
    ended = _ended(*STARTS, *HANG, STOPPED)
    assert ended.outside is not None
    assert (ended.outside.signal, ended.outside.to) == ("SIGTERM", "the launcher")
    assert _said(ended) == _said(hung) != []


def test_an_interrupt_of_the_ranks_does_not_change_the_verdict() -> None:
    """Without a launcher, the first rank that was interrupted tells when: the call that woke it is the one in which it stood."""
    hung = from_lines("\n".join([*STARTS[:2], *HANGING]))
    hung.read_at = _STARTED + 30
    ended = _ended(*STARTS[:2], *HANG, _interrupted(0, 31.5), _interrupted(1, 31.9))
    assert ended.outside is not None
    assert (ended.outside.signal, ended.outside.to) == ("SIGINT", "rank 0")
    assert ended.outside.when < _STARTED + 30.1
    assert [said[:2] for said in _said(ended)] == [said[:2] for said in _said(hung)] != []


def test_a_hang_before_the_group_is_known_afterwards() -> None:
    """A rank that did not come to init_process_group is named after SIGTERM ended the other one there, and who came there is not."""
    joins = _line("dist.init_process_group", 0, 1, phase="begin", span=1, backend="gloo", site={"file": "train.py", "line": 6, "function": "main"})
    deaths = [_line("launcher.child", at=21, child_rank=rank, child_pid=100 + rank, exit_code=-15, signal="SIGTERM") for rank in (0, 1)]
    said = _said(_ended(*STARTS, joins, STOPPED, *deaths))
    assert [one[:2] for one in said] == [("rank-not-in-init-process-group", [1])]
    assert "train.py:6" in said[0][2]


# Both ranks train, and get SIGTERM. The handler makes a broadcast: rank 0 is its root and goes on, rank 1 waits there, and is killed later.
STEPS = "ledger 0-1 step x40 backward 30"
TRAINED = (STEPS, "ledger 0-1 all_reduce 4 float32 at train.py:3", "ledger 0-1 backward at train.py:4")
HANDLED = (
    "ledger 0 broadcast 1 int64 root 0 at train.py:3 handler 15 after 1500",
    "ledger 0 backward at train.py:4 open",
    "ledger 1 broadcast 1 int64 root 0 at train.py:3 handler 15 after 1500 open",
)


def test_a_call_of_a_signals_handler_ended_the_run() -> None:
    """Without a launcher, a rank that makes a call in its handler of SIGTERM was ended from outside; no line of the job is blamed."""
    run = _ended(*STARTS[:2], *TRAINED, *HANDLED)
    assert run.outside is not None
    assert (run.outside.signal, run.outside.to) == ("SIGTERM", "rank 0")
    (found,) = judge(run).findings
    assert (found.slug, found.ranks) == ("ended-from-outside", [0, 1])
    assert "Rank 1 then waited in broadcast, which its signal handler had called." in found.verdict
    assert [item.text for item in found.evidence] == [
        "rank 0 got SIGTERM; its handler then called broadcast",
        "rank 1 got SIGTERM; its handler then called broadcast, which has not returned",
    ]


def test_a_handlers_call_is_found_in_a_fold(tmp_path: Path) -> None:
    """A fold keeps what a rank's handler called."""
    for rank, data in ledger_text.written([*TRAINED, *HANDLED]).items():
        place = tmp_path / "run" / ("rank%05d.node1.%d" % (rank, rank + 100))
        place.parent.mkdir(exist_ok=True)
        place.with_suffix(".%d.jsonl" % (rank + 100)).write_text(STARTS[rank] + "\n")
        place.with_suffix(".%d.ledger" % (rank + 100)).write_bytes(data)
    with (tmp_path / "a.fold").open("wb") as file:
        fold.write([str(tmp_path / "run")], file)
    run = load([str(tmp_path / "a.fold")])
    assert run.outside is not None
    assert [(one.to, one.did.op) for one in run.handled if one.did is not None] == [("rank 0", "broadcast"), ("rank 1", "broadcast")]


@pytest.mark.parametrize(
    "later",
    [("ledger 0-1 broadcast 1 int64 root 0 at train.py:3 handler 15",), ("ledger 0-1 broadcast 1 int64 root 0 at train.py:3 handler 10 after 2000",)],
)
def test_a_rank_that_trains_on_was_told_of_something_else(later: Any) -> None:
    """A handler's call before many more steps, and one for SIGUSR1, do not end a run."""
    assert _ended(*STARTS[:2], *TRAINED, *later).outside is None


def test_a_rank_whose_peer_was_killed_was_ended_by_its_launcher() -> None:
    """A handler's call after another rank was killed is what followed from it."""
    killed = _line("launcher.child", at=2, child_rank=0, child_pid=100, exit_code=-9, signal="SIGKILL")
    assert _ended(*STARTS, *TRAINED, HANDLED[2], killed).outside is None
    stopped = _line("launcher.child", at=2, child_rank=0, child_pid=100, exit_code=-15, signal="SIGTERM")
    assert _ended(*STARTS, *TRAINED, HANDLED[2], stopped).outside is not None


@pytest.mark.parametrize(("pid", "slug"), [(101, "rank-does-not-run"), (102, "rank-missing-from-collective")])
def test_a_process_that_was_stopped_is_known_afterwards(pid: int, slug: str) -> None:
    """What the launcher said of a stopped process while the job hung is known when the process is no more; what it said of another one is not."""
    said = "No rank has moved for 10 s. DDP421 rank-does-not-run [rank 1]: Rank 1 is stopped (process %d is in state T), in no collective." % pid
    told = _line("launcher.hang", at=12, since=10.0, ranks=[0, 1], said=said)
    run = _ended(*STARTS, HANGING[0], HANGING[1], told, STOPPED)
    assert [one[:2] for one in _said(run)] == [(slug, [1])]


def test_a_rank_that_vanished_waited_until_its_last_word() -> None:
    """A rank that was killed without a launcher that could say so, in init_process_group for long, still tells who never came."""
    joins = _line("dist.init_process_group", 0, 1, phase="begin", span=1, backend="gloo")
    silent = _line("hang.suspected", 0, 7)
    found = judge(_ended(STARTS[0], joins, silent)).findings
    assert [(one.slug, one.ranks) for one in found] == [("rank-never-started", [1])]


def test_a_launcher_that_was_killed_does_not_change_the_verdict() -> None:
    """After a launcher that left no word, not even on a rank, the ranks are judged as they stood before the first of them lost another."""
    hung = from_lines("\n".join([*STARTS, *HANGING]))
    hung.read_at = _STARTED + 30
    lost = _line("process.end", 0, 31, exit_code=1, uncaught=True, failure={"type": "RuntimeError", "message": "Connection closed by peer"})
    ended = _ended(*STARTS, *HANGING, lost)
    assert _said(ended) == _said(hung) != []
    told = _line("launcher.child", at=30.5, child_rank=1, child_pid=101, exit_code=-9, signal="SIGKILL")
    assert _said(_ended(*STARTS, *HANGING, lost, told)) != _said(hung)


def test_a_launcher_of_another_torch_says_it_at_its_end() -> None:
    """The exception with which torchrun ends tells the signal where no event does."""
    words = {"type": "torch.distributed.elastic.multiprocessing.api.SignalException", "message": "Process 7 got signal: 1"}
    ended = _ended(*STARTS, _line("launcher.end", at=20, failure=words))
    assert ended.outside is not None
    assert ended.outside.signal == "SIGHUP"


@pytest.mark.parametrize("own", [True, False])
def test_what_failed_before_is_the_cause(own: bool) -> None:
    """A signal after a failure is what followed from it: the run did not end from outside; one after a peer's loss alone did."""
    words = "no such sample" if own else "Connection closed by peer"
    failed = _line("process.end", 1, 10, exit_code=1, uncaught=True, failure={"type": "RuntimeError", "message": words})
    assert (_ended(*STARTS, failed, STOPPED).outside is None) == own


def test_a_rank_that_had_died_before_is_the_cause() -> None:
    """A launcher that is stopped after a rank crashed has not ended a healthy run."""
    crash = _line("launcher.child", at=10, child_rank=1, child_pid=101, exit_code=-11, signal="SIGSEGV")
    assert _ended(*STARTS, crash, STOPPED).outside is None


def test_a_rank_that_crashed_in_its_handler_was_healthy() -> None:
    """A rank whose handler's own call met another one, for which it was aborted, did not end the run."""
    crash = _line("launcher.child", at=22, child_rank=1, child_pid=101, exit_code=-6, signal="SIGABRT")
    later = "ledger 1 broadcast 1 int64 root 0 at train.py:3 after 21000 open"
    assert _ended(*STARTS, *TRAINED, later, STOPPED, crash).outside is not None
    assert _ended(*STARTS, *TRAINED, STOPPED, crash).outside is None


def test_the_clock_of_another_host() -> None:
    """The moment is brought to each host's clock: a host that is 1 000 s ahead loses nothing that it did before."""
    ahead = 1000.0
    joined = [
        _line("dist.init_process_group", rank, at + shift, phase=phase, span=1, backend="gloo", host=host)
        for rank, host, shift in ((0, "node1", 0.0), (1, "node2", ahead))
        for phase, at in (("begin", 0.001), ("end", 0.002))
    ]
    starts = [_line("process.start", 0), _line("process.start", 1, ahead, host="node2"), STARTS[2]]
    run = from_lines("\n".join([*starts, *joined, *HANG[:1], STOPPED]))
    first, second = run.processes
    assert first.stood_until is not None
    assert second.stood_until == pytest.approx(first.stood_until + ahead, abs=0.01)


def test_an_interrupt_of_an_earlier_generation_ended_that_one(tmp_path: Path) -> None:
    """A generation that was interrupted and started again does not say of the present one that it was ended."""
    for rank in (0, 1):
        early = [_generation(rank, 0, 0), _interrupted(rank, 10)]
        (tmp_path / ("rank%05d.node1.%d.jsonl" % (rank, rank))).write_text("\n".join(early) + "\n")
    assert load([str(tmp_path)]).outside is not None
    for rank in (0, 1):
        (tmp_path / ("rank%05d.node1.%d.jsonl" % (rank, rank + 200))).write_text(_generation(rank, 50, 1) + "\n")
    run = load([str(tmp_path)])
    assert [len(run.processes), len(run.earlier_generations)] == [2, 1]
    assert run.outside is None


_TOLD_LATER = {"rank-came-late": "rank-works-while-others-wait"}  # Whether it came at all is known at the end only.
_TAKES_LONGER = ("12_stopped_by_sigstop",)  # A process is said to be stopped when it has been silent for 15 s.
_HUNG = [job for job in JOBS if label(job) in HANGS and label(job) not in _TAKES_LONGER and "torchrun" in job.command]
_RECORDED = [(stack, job) for job in _HUNG for stack in job.stacks]


def _stopped(folder: Path) -> float:
    """Let the launcher be told to stop a moment before the first failure of a recorded run."""
    found = load([str(folder)])
    when = min([failure.when for failure in found.failures if failure.fatal and failure.process is not None], default=0.0) - 0.3
    (file,) = folder.glob("launcher.*.jsonl")
    first = json.loads(file.read_text().splitlines()[0])
    launcher = found.launchers[0]
    told = {**first, "event": "launcher.signal", "signal": "SIGTERM", "seq": 99}
    told["mono_ns"] = first["mono_ns"] + int((when - launcher.start_when) * 1e9)
    told.pop("ts")
    with file.open("a") as log:
        log.write(json.dumps(told) + "\n")
    return when


@pytest.mark.sample(10)
@pytest.mark.parametrize(("stack", "job"), _RECORDED, ids=["%s-%s" % (label(job), stack) for stack, job in _RECORDED])
def test_recorded_hangs_that_somebody_ends(stack: str, job: Job, tmp_path: Path) -> None:
    """A recorded hang whose launcher is stopped a moment before the ranks give up is told as it is without that, from files and from a fold."""
    folder = Path(shutil.copytree(TESTS / "recorded" / stack / label(job), tmp_path / "run"))
    before = judge(load([str(folder)])).findings[0]
    _stopped(folder)
    with (tmp_path / "a.fold").open("wb") as file:
        fold.write([str(folder)], file)
    for path in (folder, tmp_path / "a.fold"):
        run = load([str(path)])
        assert run.outside is not None
        after = judge(run).findings[0]
        assert (after.slug, after.ranks) == (_TOLD_LATER.get(before.slug, before.slug), before.ranks), after.verdict
