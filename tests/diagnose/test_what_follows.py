"""What follows from what: a failure that was outlived is no cause, and what comes after the end of a program, or after a signal, is none either."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.ledger_text import START
from ddp_probe.reading.load_run import from_lines
from ddp_probe.shared.schema import Site
from ddp_probe.showing.rank_state import rank_states
from ddp_probe.showing.source import own_line


def _event(name: str, rank: int, **more: Any) -> str:
    return json.dumps({"event": name, "rank": rank, **more})


def _set_device(rank: int) -> List[str]:
    """Return the lines of a set_device that failed."""
    site = {"file": "/job/dist_utils.py", "line": 41, "function": "setup_distributed"}
    failure = {"type": "AttributeError", "message": "module 'torch._C' has no attribute '_cuda_setDevice'"}
    return [
        _event("device.set", rank, phase="begin", span=2, site=site, target="torch.cuda.set_device", device=str(rank)),
        _event("device.set", rank, phase="error", span=2, failure=failure),
    ]


def _joined(rank: int) -> List[str]:
    site = {"file": "/job/dist_utils.py", "line": 40, "function": "setup_distributed"}
    return [
        _event("process.start", rank, world_size=2),
        _event("dist.init_process_group", rank, phase="begin", span=1, site=site, backend="gloo"),
        _event("dist.init_process_group", rank, phase="end", span=1, group_size=2),
    ]


def _of(lines: List[str]) -> Diagnosis:
    return judge(from_lines("\n".join(lines)))


def _slugs(diagnosis: Diagnosis) -> List[str]:
    return [finding.slug for finding in diagnosis.findings]


_LATER: Dict[str, List[str]] = {
    "a collective": ["ledger 0-1 all_reduce 16 float32 at /job/solver.py:12"],
    "a pass of training": ["ledger 0-1 backward at /job/solver.py:12"],
    "a wrap": [_event("ddp.init", rank, phase="begin", span=3) for rank in (0, 1)],
}


@pytest.mark.parametrize("later", _LATER)
def test_a_failure_that_was_outlived_is_no_cause(later: str) -> None:
    """If a rank that caught a failed set_device made another call of training, nothing that ends it later is said to come from that."""
    lines = [line for rank in (0, 1) for line in [*_joined(rank), *_set_device(rank)]]
    assert _slugs(_of(lines)) == ["cuda-call-without-cuda"]
    assert "cuda-call-without-cuda" not in _slugs(_of([*lines, *_LATER[later]]))


def test_what_was_outlived_stays_on_the_page() -> None:
    """Beside the cause, the page says which failure the ranks caught, where, and that they went on."""
    lines = [line for rank in (0, 1) for line in [*_joined(rank), *_set_device(rank)]]
    wrapped = [_event("ddp.init", rank, phase=phase, span=3) for rank in (0, 1) for phase in ("begin", "end")]
    failure = {"type": "KeyError", "message": "'bbox'", "frames": [{"file": "/job/coco.py", "line": 9, "function": "get"}]}
    ends = [_event("process.end", rank, exit_code=1, uncaught=True, failure=failure) for rank in (0, 1)]
    diagnosis = _of([*lines, *wrapped, *ends])
    assert _slugs(diagnosis) == ["own-exception"]
    (note,) = diagnosis.run.inventory.notes
    assert note.startswith(
        "Ranks 0-1 caught AttributeError: module 'torch._C' has no attribute '_cuda_setDevice' at /job/dist_utils.py:41, and went on"
    )


def test_a_call_that_needs_cuda_fails_by_itself() -> None:
    """A tensor asked of CUDA on a host without it, after a swallowed set_device, would fail with that call guarded."""
    lines = [line for rank in (0, 1) for line in [*_joined(rank), *_set_device(rank)]]
    frames = [{"file": "/job/logger.py", "line": 43, "function": "synchronize"}]
    failure = {"type": "AssertionError", "message": "Torch not compiled with CUDA enabled", "frames": frames}
    ends = [_event("process.end", rank, exit_code=1, uncaught=True, failure=failure) for rank in (0, 1)]
    (finding,) = _of([*lines, *ends]).findings
    assert (finding.slug, finding.ranks) == ("cuda-call-without-cuda", [0, 1])
    assert "/job/logger.py:43 asks for CUDA" in finding.verdict


def test_a_wait_for_a_rank_with_a_group_follows_from_no_failure_of_its_set_up() -> None:
    """A rank that lost a peer whose set_device had failed after it joined the group did not fail because of that."""
    lost = {
        "type": "RuntimeError",
        "message": "Connection closed by peer [127.0.0.1]:1",
        "frames": [{"file": "/job/s.py", "line": 9, "function": "f"}],
    }
    lines = [*_joined(0), *_joined(1), *_set_device(1), _event("process.end", 0, exit_code=1, uncaught=True, failure=lost)]
    assert "init-failure-swallowed" not in _slugs(_of(lines))
    alone = [line for line in lines if '"dist.init_process_group"' not in line or '"rank": 0' in line]
    assert _slugs(_of(alone))[:1] == ["cuda-call-without-cuda"]


def test_a_save_by_each_of_many_jobs_is_theirs() -> None:
    """Ranks that train alone for want of a launcher each save: that is said, and that they save to one file is no finding beside it."""
    own = {"local_rank": 0, "world_size": 2}
    site = {"file": "/job/train.py", "line": 9, "function": "main"}
    starts = [_event("process.start", rank, role="rank", launcher="torchrun", **own) for rank in (0, 1)]
    wraps = [_event("mmengine.wrap_model", rank, phase="begin", span=1, launcher="none", distributed=False, site=site) for rank in (0, 1)]
    saves = [
        _event("checkpoint.save", rank, phase=phase, span=2, site=site, path="last.pth", **({"inode": 4, "in_place": True} if phase == "end" else {}))
        for phase in ("begin", "end")
        for rank in (0, 1)
    ]
    assert _slugs(_of([*starts, *wraps, *saves])) == ["launched-without-launcher"]
    (finding,) = _of([*starts, *saves]).findings
    assert "os.environ.get('RANK', '0') == '0'" in finding.remedy
    assert "get_rank" not in finding.remedy


def _stands(rank: int, *frames: Any) -> str:
    stack = [{"file": file, "line": line, "function": function} for file, line, function in frames]
    return _event("hang.suspected", rank, mono_ns=int((START + 90) * 1e9), threads=[{"main": True, "frames": stack}])


def test_the_place_where_ways_part_is_named() -> None:
    """Of two ranks that wait in one helper, the lines of the function that called it are named, as the helper's line is the same."""
    helper, fit = ("/job/dist_utils.py", 217, "barrier"), "/job/det_solver.py"
    log = [
        _stands(0, (fit, 20, "main"), (fit, 76, "fit"), ("/job/evaluate.py", 9, "evaluate"), helper),
        _stands(1, (fit, 20, "main"), (fit, 78, "fit"), helper),
        "ledger 0-1 backward at /job/train.py:20 x3",
        "ledger 0 barrier at /job/dist_utils.py:217 open",
        "ledger 1 backward at /job/dist_utils.py:217 open",
    ]
    (finding,) = _of(log).findings
    assert finding.slug == "rank-missing-from-collective"
    assert "In fit their ways part: rank 1 is at %s:78, and rank 0 at %s:76." % (fit, fit) in finding.verdict
    assert "%s:76" % fit in finding.remedy


def test_a_rank_that_waits_below_ddp_is_not_asked_what_it_does() -> None:
    """A rank that waits in DDP's forward for the buffers of another is in no loop, lock or file of its own."""
    torch = "/env/site-packages/torch/nn/parallel/distributed.py"
    log = [
        _stands(0, ("/job/train.py", 20, "main"), (torch, 1600, "_pre_forward")),
        _stands(1, ("/job/train.py", 31, "main")),
        "ledger 0-1 all_reduce 16 float32 at /job/train.py:9 x3",
        "ledger 1 barrier at /job/train.py:31 open",
        "ledger 0 forward at /job/train.py:20 open",
    ]
    (finding,) = _of(log).findings
    assert finding.slug == "rank-missing-from-collective"
    assert "Find out what rank 0 does" not in finding.remedy
    assert "Compare the path of rank 0" in finding.remedy
    here = [line.replace(torch, "/job/model.py") for line in log]
    assert "Find out what rank 0 does" in _of(here).findings[0].remedy


def test_a_rank_that_runs_what_is_registered_for_its_exit_has_left() -> None:
    """A rank whose stack begins in a function of the job, below no module, has left its program, whatever it waits in."""
    log = [
        _stands(0, ("/job/train.py", 40, "<module>"), ("/job/train.py", 20, "main")),
        _stands(1, ("/job/dist_utils.py", 30, "cleanup")),
        "ledger 0-1 backward at /job/train.py:20 x3",
        "ledger 0 backward at /job/train.py:20 open",
        "ledger 1 barrier at /job/dist_utils.py:30 open",
    ]
    (finding,) = _of(log).findings
    assert (finding.slug, finding.ranks) == ("rank-left-while-others-wait", [1])
    assert "Rank 1 has left its program, and runs cleanup at /job/dist_utils.py:30 as it exits" in finding.verdict
    assert "exit()" in finding.remedy
    inside = [line.replace('"function": "cleanup"', '"function": "<module>"') for line in log]
    assert _slugs(_of(inside)) == ["rank-missing-from-collective"]


def test_an_exit_call_that_hides_an_exception_has_its_line() -> None:
    """Of a rank that exit() in an except clause has ended, the line of that call is named, while it exits and afterwards."""
    caught = {
        "type": "urllib.error.URLError",
        "message": "<urlopen error timed out>",
        "frames": [{"file": "/job/hgnetv2.py", "line": 524, "function": "__init__"}],
    }
    call = {"file": "/job/hgnetv2.py", "line": 556, "function": "__init__"}
    exits = _event("process.exit", 1, exit_code=0, site=call, caught=caught)
    ledgers = [
        "ledger 0-1 backward at /job/train.py:20 x3",
        "ledger 0 backward at /job/train.py:20 open",
    ]
    live = [
        _stands(0, ("/job/train.py", 40, "<module>"), ("/job/train.py", 20, "main")),
        exits,
        _stands(1, ("/job/dist_utils.py", 30, "cleanup")),
        *ledgers,
        "ledger 1 barrier at /job/dist_utils.py:30 open",
    ]
    (finding,) = _of(live).findings
    by = "by the exit call at /job/hgnetv2.py:556, in an except clause that had caught URLError"
    assert (finding.slug, finding.ranks) == ("rank-left-while-others-wait", [1])
    assert "Rank 1 has left its program %s, and runs cleanup at /job/dist_utils.py:30" % by in finding.verdict
    assert "Fix what failed at /job/hgnetv2.py:524: URLError: <urlopen error timed out>." in finding.remedy
    assert "remove the exit call at /job/hgnetv2.py:556" in finding.remedy
    assert next(item.site.line for item in finding.evidence if item.site is not None) == 556
    (unseen,) = _of([line for line in live if "cleanup" not in line]).findings
    assert (unseen.slug, unseen.ranks) == (finding.slug, finding.ranks)
    assert "Rank 1 has left its program %s, after 3 backward passes; rank 0 waits" % by in unseen.verdict
    over = _event("process.end", 1, exit_code=0, mono_ns=int((START + 60) * 1e9))
    (finding,) = _of([live[0], exits, over, *ledgers]).findings
    assert (finding.slug, finding.ranks) == ("rank-left-while-others-wait", [1])
    assert "Rank 1 ended with exit code 0, %s" % by in finding.verdict
    assert next(item.site.line for item in finding.evidence if item.site is not None) == 556


_HIDES = """import torch.distributed as dist


def cleanup():
    dist.barrier()


def load(rank):
    try:
        if rank == 0:
            download()
        dist.barrier()
        read()
    except Exception:
        exit()


def main(rank):
    dist.barrier()
    load(rank)
"""


def test_what_runs_at_exit_is_no_step_of_the_program(tmp_path: Path) -> None:
    """If a barrier at exit meets one of the others, the exit call is named, and not the two lines."""
    job = tmp_path / "train.py"
    job.write_text(_HIDES, encoding="utf-8")
    site = {"file": str(job), "line": 15, "function": "load"}
    caught = {"type": "urllib.error.URLError", "message": "<urlopen error timed out>"}
    exits = _event("process.exit", 0, exit_code=0, site=site, caught=caught, mono_ns=int((START + 0.001) * 1e9))
    log = [
        *_joined(0),
        exits,
        _event("process.end", 0, exit_code=0, mono_ns=int((START + 0.035) * 1e9)),
        *_joined(1),
        _event("process.end", 1, exit_code=0, mono_ns=int((START + 0.06) * 1e9)),
        "ledger 0-1 barrier at {0}:19:main via {0}:23",
        "ledger 0 barrier at {0}:5:cleanup",
        "ledger 1 barrier at {0}:12:load via {0}:23 {0}:20",
        "ledger 1 barrier at {0}:5:cleanup raised",
    ]
    # In quotes: the folder may have a space in its name.
    lines = [re.sub(r"\{0\}:(\S+)", lambda place: "'%s:%s'" % (job, place[1]), line) for line in log]
    (finding,) = _of(lines).findings
    assert (finding.slug, finding.ranks) == ("left-early", [0])
    by = "by the exit call at %s:15, in an except clause that had caught URLError" % job
    assert by in finding.verdict
    assert _slugs(_of([line for line in lines if "process.exit" not in line]))[:1] == ["calls-out-of-step"]


_LEAVES = """import torch.distributed as dist


def cleanup():
    dist.barrier()


def load():
    try:
        download()
    except Exception:
        exit()


def fit(model, loader, optimizer):
    for number, batch in enumerate(loader):
        model(batch).backward()
        if is_good(batch):
            optimizer.step()
    load()
"""


def test_what_runs_at_exit_is_not_where_a_rank_left(tmp_path: Path) -> None:
    """A rank that an exit call ends is shown with that call, and not with the barrier of its cleanup, as the place at which it left the others."""
    job = tmp_path / "train.py"
    job.write_text(_LEAVES, encoding="utf-8")
    turn = ["%s at '%s:%d:fit' via '%s:30'" % (name, job, line, job) for name, line in (("dataloader", 16), ("forward", 17), ("backward", 17))]
    call = {"file": str(job), "line": 12, "function": "load"}
    log = [
        _stands(0, (str(job), 30, "<module>"), (str(job), 17, "fit")),
        _event("process.exit", 1, exit_code=0, site=call, mono_ns=int((START + 0.11) * 1e9)),
        _stands(1, (str(job), 5, "cleanup")),
        *["ledger 0-1 " + entry for entry in turn * 3],
        *["ledger 0 " + entry for entry in turn[:2]],
        "ledger 0 %s open" % turn[2],
        "ledger 1 barrier at '%s:5:cleanup' open" % job,
    ]
    (finding,) = _of(log).findings
    assert (finding.slug, finding.ranks) == ("rank-left-while-others-wait", [1])
    assert (own_line(finding) or Site("", 0)).line == 12
    assert "left the others" not in finding.verdict
    before = log[1].replace('"mono_ns": %d' % int((START + 0.11) * 1e9), '"mono_ns": %d' % int((START + 1) * 1e9))
    (finding,) = _of([log[0], before, *log[2:]]).findings
    assert "Rank 1 left the others" in finding.verdict


def test_the_table_shows_no_card_that_is_not_there() -> None:
    """A set_device that a remedy skipped on a host without cards sets none; parameters that have been trained are not without data."""
    log = [
        _event("process.start", 0, world_size=1),
        _event("device.set", 0, phase="begin", span=1, target="torch.cuda.set_device", device="0"),
        _event("device.set", 0, phase="end", span=1),
        _event("ddp.init", 0, phase="begin", span=2, placement={"parameters": 4, "devices": {"meta": {"count": 4}}}),
        _event("ddp.init", 0, phase="end", span=2),
    ]
    (state,) = rank_states(from_lines("\n".join(log)))
    assert (state.card, state.devices) == ("", "meta")
    (trained,) = rank_states(from_lines("\n".join([*log, "ledger 0 optimizer at /job/train.py:9"])))
    assert trained.devices == ""
