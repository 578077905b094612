"""What proves that a rank did well, what does not, and what a run that did well did so in spite of; on written events."""

import json
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines


def _line(name: str, **fields: Any) -> str:
    return json.dumps({"event": name, **fields})


def _start(rank: int, **more: Any) -> str:
    return _line("process.start", **{"rank": rank, "world_size": 2, "role": "rank", "launcher": "torchrun", "pid": 100 + rank, **more})


def _judged(*lines: str) -> Diagnosis:
    return judge(from_lines("\n".join(lines)))


def _two(*of_rank_1: str, last: str = "") -> Diagnosis:
    """Rank 0 does well; rank 1 does what is given."""
    good = [_start(0), _line("process.end", rank=0, pid=100, exit_code=0)]
    return _judged(*good, _start(1), *of_rank_1, *([last] if last else []))


_LAUNCHER = _line("launcher.start", launcher="torchrun", pid=9)


def _child(rank: int, code: int, signal: str = "") -> str:
    return _line("launcher.child", pid=9, child_local_rank=rank, child_pid=100 + rank, exit_code=code, signal=signal)


_END: Dict[str, Any] = {"rank": 1, "pid": 101}
_OPEN = _line("ddp.init", phase="begin", rank=1, pid=101, span=1)
_FAILED = _line("ddp.init", phase="error", rank=1, pid=101, span=1, failure={"type": "RuntimeError", "message": "nobody knows this one"})
_SOURCES = {
    "its own last line": ([_line("process.end", **_END, exit_code=0)], "", ""),
    "its parent's word": ([], _child(1, 0), ""),
    "its parent's word beside a last line without a code": ([_line("process.end", **_END)], _child(1, 0), ""),
    "a failure that was handled": ([_OPEN, _FAILED, _line("process.end", **_END, exit_code=0)], "", ""),
    "a last line without a code": ([_line("process.end", **_END)], "", "unknown-exit-code"),
    "no last line": ([], "", "no-end"),
    "an exit code": ([_line("process.end", **_END, exit_code=3)], "", "exit-code"),
    "an exit code that its parent tells": ([_line("process.end", **_END, exit_code=0)], _child(1, 3), "exit-code"),
    "a signal": ([], _child(1, -15, "SIGTERM"), "signal"),
    "a failed wrap and an unknown end": ([_OPEN, _FAILED, _line("process.end", **_END)], "", "unknown-exit-code"),
    "a failed wrap and an exit code": ([_OPEN, _FAILED, _line("process.end", **_END, exit_code=1)], "", "unrecognised-failure"),
    "a line that is missing": ([_line("process.end", **_END, exit_code=0, seq=2)], "", "lines-missing"),
}


@pytest.mark.parametrize("what", _SOURCES)
def test_a_rank_is_proven_good_or_it_is_said_why_not(what: str) -> None:
    """Clear needs exit code 0 from the rank itself or from its parent; anything else is undecided, with its reason and a next step."""
    lines, word, slug = _SOURCES[what]
    diagnosis = _two(*lines, *([_LAUNCHER, word] if word else []))
    assert diagnosis.verdict == ("undecided" if slug else "clear")
    assert [answer.slug for answer in diagnosis.undecided][:1] == ([slug] if slug else [])
    assert all(answer.next for answer in diagnosis.undecided)


def test_several_ranks_end_by_themselves() -> None:
    """The sentence about several ranks has verbs and pronouns for several."""
    ends = [_line("process.end", rank=rank, pid=100 + rank) for rank in (0, 1)]
    (answer,) = _judged(_start(0), ends[0], _start(1), ends[1]).undecided
    assert answer.because.startswith("Ranks 0-1 ended by themselves, but the exit code is not known")
    (answer,) = _two(ends[1]).undecided
    assert answer.because.startswith("Rank 1 ended by itself, but the exit code is not known")


def test_nobody_may_be_missing() -> None:
    """One good rank of two is not clear, and neither is one of a number that nothing tells."""
    end = _line("process.end", rank=0, pid=100, exit_code=0)
    assert [answer.slug for answer in _judged(_start(0), end).undecided] == ["missing-ranks"]
    assert [answer.slug for answer in _judged(_start(0, world_size=None), end).undecided] == ["unknown-size"]
    assert _judged(_start(0, world_size=None, role="solo", launcher="none"), end).verdict == "clear"


_WORDS = (
    "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got"
    " device_ids [1], output_device None, and module parameters {device(type='cpu')}."
)


def _wrap_on_cpu(end: str) -> List[str]:
    placement = {"parameters": 2, "devices": {"cpu": {"count": 2}}, "majority": "cpu"}
    failure = {"type": "ValueError", "message": _WORDS}
    begin = _line("ddp.init", phase="begin", rank=1, pid=101, span=1, device_ids=[1], placement=placement, backend="gloo")
    return [begin, _line("ddp.init", phase="error", rank=1, pid=101, span=1, failure=failure), end]


def test_a_failure_behind_an_exit_code_reaches_the_rules() -> None:
    """A refused wrap that the job logged before it left with exit code 1 is found, as one that reached the top is; with exit code 0 it is handled."""
    found = _two(*_wrap_on_cpu(_line("process.end", **_END, exit_code=1)))
    assert [(finding.id, finding.ranks) for finding in found.findings] == [("DDP106", [1])]
    assert _two(*_wrap_on_cpu(_line("process.end", **_END, exit_code=0))).verdict == "clear"


def test_what_spawn_raised_is_read_even_if_the_program_caught_it() -> None:
    """The exception that mp.spawn hands on counts as the child's, with and without the program's own end; a child shows as failed."""
    trace = 'Traceback (most recent call last):\n  File "/train/t.py", line 9, in work\n    wrap()\nValueError: %s\n' % _WORDS
    said = "\n\n-- Process 1 terminated with the following error:\n" + trace
    raised = {"type": "torch.multiprocessing.spawn.ProcessRaisedException", "message": said}
    parent = [
        _line("launcher.start", launcher="spawn", pid=9),
        _line("launcher.group", phase="begin", pid=9, span=1, entrypoint="work"),
        _line("launcher.child", pid=9, child_local_rank=1, child_pid=101, exit_code=1, first=True),
        _line("launcher.group", phase="error", pid=9, span=1, failure=raised),
        _line("launcher.end", pid=9, exit_code=1),
    ]
    diagnosis = _two(*_wrap_on_cpu(_line("process.end", **_END)), *parent)
    assert [(finding.id, finding.ranks) for finding in diagnosis.findings] == [("DDP106", [1])]


def test_spawn_that_came_back_proves_its_children() -> None:
    """Where mp.spawn has waited and raised nothing, each child that left a file has ended with exit code 0."""
    child = {"role": "promoted", "launcher": "multiprocessing"}
    begin = _line("launcher.group", phase="begin", pid=9, span=1, entrypoint="work", mono_ns=1)
    lines = [_line("launcher.start", launcher="spawn", pid=9, mono_ns=1), begin, _start(0, **child), _start(1, **child)]
    assert [answer.slug for answer in _judged(*lines).undecided] == ["no-end"]
    assert _judged(*lines, _line("launcher.group", phase="end", pid=9, span=1)).verdict == "clear"


def test_a_launch_that_failed_after_good_ranks_is_not_clear() -> None:
    """A launching program that ends with exit code 1 is told of, though every rank has ended with 0."""
    good = [_line("process.end", **_END, exit_code=0)]
    diagnosis = _two(*good, _line("launcher.start", launcher="spawn", pid=9), _line("launcher.end", pid=9, exit_code=1))
    assert [(answer.slug, bool(answer.next)) for answer in diagnosis.undecided] == [("launch-failed", True)]


@pytest.mark.parametrize(
    ("kind", "answers", "asked"),
    [
        ("KeyError", ["DDP623"], []),
        ("torch.multiprocessing.spawn.ProcessExitedException", [], ["no-rank-wrote"]),
    ],
)
def test_a_launcher_that_failed_before_any_rank(kind: str, answers: List[str], asked: List[str]) -> None:
    """Where no rank left a file, the exception of the launching program's own is judged as a rank's is; what a child did to it is not."""
    failure = {"type": kind, "message": "'sizes'", "frames": [{"file": "/train/t.py", "line": 9, "function": "main"}]}
    diagnosis = _judged(_line("launcher.start", launcher="spawn", pid=9), _line("launcher.end", pid=9, failure=failure))
    assert [finding.id for finding in diagnosis.findings] == answers
    assert [answer.slug for answer in diagnosis.undecided] == asked
    good = [_start(0), _line("process.end", **_END, exit_code=0)]
    both = _judged(*good, _line("launcher.start", launcher="spawn", pid=9), _line("launcher.end", pid=9, failure=failure))
    assert [finding.id for finding in both.findings] == []
    assert both.verdict == "undecided"


def _generation(number: int, failure: Any) -> List[str]:
    lines = []
    for rank in (0, 1):
        pid, host = 1000 * number + rank, "node%d" % (10 * number + rank)  # from_lines makes one file a rank and host
        known = {"rank": rank, "pid": pid, "host": host}
        lines.append(_line("process.start", world_size=2, role="rank", environment={"TORCHELASTIC_RESTART_COUNT": str(number)}, **known))
        told = {"exit_code": 1, "uncaught": True, "failure": failure} if failure else {"exit_code": 0}
        lines.append(_line("process.end", **known, **told))
    return lines


def test_failed_starts_before_a_good_one_are_told_with_their_causes() -> None:
    """A job that did well at the third start is no clear run: the first two failures are named, or said to be unknown, as warnings."""
    port = {"type": "RuntimeError", "message": "The server socket has failed to listen on any local network address. EADDRINUSE"}
    strange = {"type": "KeyError", "message": "'img'"}
    known = _judged(*_generation(0, port), *_generation(1, port), *_generation(2, None))
    assert [(finding.slug, finding.severity) for finding in known.findings] == [("master-port-in-use", "warning")] * 2
    assert known.findings[0].verdict.startswith("The job succeeded at its third start; the first start failed: ")
    unknown = _judged(*_generation(0, strange), *_generation(1, None))
    assert (unknown.verdict, [answer.slug for answer in unknown.undecided]) == ("undecided", ["failed-start"])
    assert "at its second start; the first start failed: Ranks 0-1 failed with KeyError" in unknown.undecided[0].because


def _repaired(remedy: str, **more: Any) -> Diagnosis:
    known = {"because": "the module is on cpu", "for_good": "Pass device_ids only for CUDA.", **more}
    change = _line("remedy.applied", rank=1, pid=101, remedy=remedy, before={"device_ids": "[1]"}, after={"device_ids": "None"}, **known)
    return _two(change, _line("process.end", **_END, exit_code=0))


def test_a_repaired_run_is_its_repairs() -> None:
    """A job that DDP_PROBE_FIX has changed did not do well by itself: the change is told under the rule of what it repaired, and what to write."""
    (finding,) = _repaired("device-ids", site={"file": "/train/t.py", "line": 9}).findings
    assert (finding.id, finding.severity, finding.ranks, finding.fix) == ("DDP106", "warning", [1], "device-ids")
    assert "DDP_PROBE_FIX=device-ids changed a call at /train/t.py:9 on rank 1: device_ids=[1] became device_ids=None" in finding.verdict
    assert finding.remedy == "Pass device_ids only for CUDA."
    assert [found.id for found in _repaired("device-ids", because="this torch takes device_ids only for CUDA").findings] == ["DDP116"]
    assert _repaired("atomic-save", precaution=True).verdict == "clear"


def test_a_repaired_wrap_has_the_change_in_its_own_call() -> None:
    """Where the repaired wrap was recorded, the change for good is one in that call, as of a wrap that failed."""
    change = {"remedy": "device-ids", "before": {"device_ids": "[1]"}, "after": {"device_ids": "None"}, "because": "the module is on cpu"}
    begin, _, end = _wrap_on_cpu(_line("process.end", **_END, exit_code=0))
    done = _line("ddp.init", phase="end", rank=1, pid=101, span=1)
    (finding,) = _two(begin, _line("remedy.applied", rank=1, pid=101, **change), done, end).findings
    assert (finding.id, finding.severity) == ("DDP106", "warning")
    assert finding.edits
