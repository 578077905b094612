"""How a rank left: by an exit call, an exception, a signal, or without a word; and the line that the report names. On written events."""

import json
import os
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing.source import own_line

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_SITE = {"file": "/train/train.py", "line": 31, "function": "main"}


def _line(name: str, rank: int, **fields: Any) -> str:
    return json.dumps({"event": name, "rank": rank, "pid": 100 + rank, **fields})


def _start(rank: int) -> str:
    return _line("process.start", rank, world_size=2, role="rank", launcher="torchrun")


def test_an_exit_code_has_its_line() -> None:
    """An exit code without an exception is undecided, and the reason names the line that called sys.exit."""
    good = [_start(0), _line("process.end", 0, exit_code=0)]
    answer = judge(from_lines("\n".join([*good, _start(1), _line("process.end", 1, exit_code=3, site=_SITE)])))
    assert answer.verdict == "undecided"
    assert "exit code 3 without an exception that the probe saw, by the exit call at /train/train.py:31" in answer.undecided[0].because


def test_an_exit_call_has_its_condition(tmp_path: Path) -> None:
    """The `if` that led to an exit call is named; if it asks whether a value is finite, the next step is to find the rank that has it."""
    job = tmp_path / "train.py"
    source = "if not math.isfinite(value):\n    print(value)\n    sys.exit(1)\nelse:\n    sys.exit(2)\nif done:\n    sys.exit(3)\n"
    source += "if __name__ == '__main__':\n    sys.exit(main())\n"
    job.write_text(source, encoding="utf-8")
    os.utime(job, (1.0, 1.0))  # Before the run, which ends at 3 s.
    answers = {}
    for line in (3, 5, 7, 9):
        site = {**_SITE, "file": str(job), "line": line}
        ends = [_line("process.end", rank, exit_code=1, site=site) for rank in (0, 1)]
        (answers[line],) = judge(from_lines("\n".join([_start(0), _start(1), *ends]))).undecided
    assert "by the exit call at %s:3, under 'if not math.isfinite(value)' in line 1." % job in answers[3].because
    assert answers[3].next.startswith("Print the value before the ranks reduce it")
    assert "under" not in answers[5].because + answers[9].because
    assert "under 'if done' in line 6." in answers[7].because
    assert "Print the value" not in answers[5].next + answers[7].next


def test_who_left_early_has_its_line() -> None:
    """A rank that left while another one needed it is named with its exit code and the line that called sys.exit."""
    joined = [_line("dist.init_process_group", rank, phase=phase, span=1, backend="gloo") for rank in (0, 1) for phase in ("begin", "end")]
    gone = {"type": "RuntimeError", "message": "Connection closed by peer"}
    ends = [_line("process.end", 1, exit_code=1, site=_SITE), _line("process.end", 0, exit_code=1, uncaught=True, failure=gone)]
    answer = judge(from_lines("\n".join([_start(0), _start(1), *joined, *ends])))
    assert [finding.slug for finding in answer.findings] == ["left-early"]
    assert "(exit code 1, by the exit call at /train/train.py:31)" in answer.findings[0].verdict


def _joined(*ranks: int) -> List[str]:
    lines = [_start(rank) for rank in ranks]
    return lines + [_line("dist.init_process_group", rank, phase=phase, span=1, backend="gloo") for rank in ranks for phase in ("begin", "end")]


def _over(lines: List[str]) -> Run:
    """Return a run in which no process runs any more."""
    run = from_lines("\n".join(lines))
    run.running.clear()
    return run


def _lost(rank: int) -> str:
    frames = [{"file": "/train/train.py", "line": 40, "function": "main"}]
    gone = {"type": "RuntimeError", "message": "Connection closed by peer", "frames": frames}
    return _line("process.end", rank, exit_code=1, uncaught=True, failure=gone)


def test_an_exception_behind_an_exit_call_has_the_line_that_raised_it() -> None:
    """A rank that catches an exception and calls sys.exit is named with the line that raised it, and the report shows that line."""
    frames = [{"file": "/train/train.py", "line": 12, "function": "main"}, {"file": "/train/data.py", "line": 7, "function": "read"}]
    caught = {"type": "KeyError", "message": "'img'", "raised_at": frames[-1], "frames": frames}
    end = _line("process.end", 1, exit_code=1, site=_SITE, failure=caught)
    waits = ["ledger 0-1 all_reduce 4 float32 at /train/train.py:40", "ledger 0 all_reduce 4 float32 at /train/train.py:40 raised"]
    for ledger in ([], waits):
        (finding, *_) = judge(from_lines("\n".join([*_joined(0, 1), end, _lost(0), *ledger]))).findings
        assert finding.ranks == [1]
        assert "/train/data.py:7" in finding.verdict
        assert "KeyError: 'img'" in finding.verdict
        assert "train.py:31" not in finding.verdict
        assert (own_line(finding) or Site("", 0)).line == 7
        assert "/train/data.py:7" in finding.remedy or not ledger


def test_an_exit_call_is_not_a_smaller_number_of_batches() -> None:
    """Who leaves by an exit call is shown with that line, and is not asked for the length of its loader."""
    for code, site, shown in ((9, _SITE, 31), (0, None, 40)):
        end = _line("process.end", 1, exit_code=code, **({"site": site} if site else {}))
        (finding,) = judge(from_lines("\n".join([*_joined(0, 1), end, _lost(0)]))).findings
        assert (finding.slug, finding.ranks) == ("left-early", [1])
        assert ("len(loader)" in finding.remedy) == (site is None)
        assert (own_line(finding) or Site("", 0)).line == shown


def test_a_rank_without_a_last_line_is_named_by_the_loss_of_the_others() -> None:
    """A rank without a last line, whose loss all others report, is the one to name; what ended it is asked once, and nothing stays open."""
    ledger = ["ledger 0-1 all_reduce 4 float32 at /train/train.py:40", "ledger 0 all_reduce 4 float32 at /train/train.py:40 raised"]
    answer = judge(_over([*_joined(0, 1), _lost(0), *ledger]))
    assert [(finding.slug, finding.ranks) for finding in answer.findings] == [("rank-left-while-others-wait", [1])]
    assert "what ended rank 1 after its last call at /train/train.py:40: a signal" in answer.findings[0].remedy
    assert answer.undecided == []


def test_a_rank_without_a_last_line_is_named_where_no_ledger_tells() -> None:
    """Without a launcher a rank without a last line is named if the others lost it, or it was gone while they stood; two of three are not."""
    hang = _line("launcher.hang", 0, since=20.0, ranks=[0], gone=[1], said="No rank on this host has moved for 20 s.")
    for sign, seen in ((_lost(0), "rank 0 lost the connection"), (hang, "while rank 0 hung")):
        answer = judge(_over([*_joined(0, 1), sign]))
        assert [(finding.slug, finding.ranks, finding.confidence) for finding in answer.findings] == [("first-to-fail", [1], "medium")]
        assert seen in answer.findings[0].verdict
        assert "no launcher's file says whether a signal ended it" in answer.findings[0].verdict
        assert answer.undecided == []
        assert judge(_over([*_joined(0, 1, 2), sign.replace("[1]", "[1, 2]")])).verdict == "undecided"


@pytest.mark.parametrize(("state", "said"), [("", "ended"), ("raised", "failed"), ("open", "began")])
def test_a_killed_rank_was_seen_last_where_its_ledger_says(state: str, said: str) -> None:
    """A rank that a signal ended is told with its last call by the ledger, which is later than the last line of its log."""
    child = '{"event":"launcher.child","child_rank":1,"child_local_rank":1,"exit_code":-9,"signal":"SIGKILL"}'
    ledger = ["ledger 0-1 all_reduce 4 float32 at /train/train.py:40", "ledger 1 broadcast 4 float32 root 0 at /train/train.py:41 %s" % state]
    lines = [*_joined(0, 1), _lost(0), '{"event":"launcher.start","launcher":"torchrun"}', child, *ledger]
    found = next(one for one in judge(from_lines("\n".join(lines))).findings if one.slug == "killed-by-signal")
    assert "rank 1 wrote nothing after broadcast %s at" % said in found.verdict
    assert "/train/train.py:41" in found.verdict


def test_ranks_without_a_last_line_were_not_all_killed() -> None:
    """A pool ends its workers without a last line: the reason names where each rank was, and what to do first is to read what the pool printed."""
    ledger = ["ledger 0-1 all_reduce 4 float32 at /train/train.py:40", "ledger 0 all_reduce 4 float32 at /train/train.py:44 open"]
    answer = judge(_over([*_joined(0, 1), *ledger]))
    told = next(one for one in answer.undecided if one.slug == "no-end")
    assert "killed" not in told.because
    assert "Rank 0 was in all_reduce of 4 float32 elements at /train/train.py:44. Rank 1 was outside any collective" in told.because
    assert told.next.startswith("Look at what the program that started it printed: a pool")


def test_a_launch_without_a_process_group_may_be_well() -> None:
    """A launch that came back without an error, and whose processes made no group, is not said to have ended before it imported torch."""
    launcher = [
        '{"event":"launcher.start","launcher":"spawn"}',
        '{"event":"launcher.group","phase":"begin","span":1,"asked":2,"site":{"file":"/train/rpc.py","line":10,"function":"main"}}',
        '{"event":"launcher.group","phase":"end","span":1}',
        '{"event":"launcher.end","exit_code":0}',
    ]
    (told,) = judge(from_lines("\n".join(launcher))).undecided
    assert told.because == "The launch of 2 processes at /train/rpc.py:10 returned without an error, but none created a process group."
    assert "torch.distributed.rpc" in told.next


@pytest.mark.parametrize(("ranks", "more", "blame"), [((0, 1), 0, [0, 1]), ((0, 1, 2), 1, [1])])
@pytest.mark.parametrize("leave", [True, False])
def test_an_exchange_more_is_not_a_batch_fewer(ranks: Tuple[int, ...], more: int, blame: List[int], leave: bool) -> None:
    """Of ranks that all made as many backward passes the fewer are named, whether they exchanged gradients once more or less; of two, both."""
    wrap = [_line("ddp.init", rank, phase=phase, span=2) for rank in ranks for phase in ("begin", "end")]
    rest = [rank for rank in ranks if rank != more]
    others = ",".join(map(str, rest))
    passes = ["ledger %s backward at /train/train.py:11 x6" % others, "ledger %d backward at /train/train.py:11 x5" % more]
    stuck = "ledger %d backward at /train/train.py:11 %s" % (more, "raised" if leave else "open")
    waits = [] if leave else ["ledger %s barrier at /train/train.py:14 open" % others]
    ends = [_line("process.end", rank, exit_code=0) for rank in rest] + [_lost(more)] if leave else []
    (finding,) = judge(from_lines("\n".join([*_joined(*ranks), *wrap, *ends, *passes, stuck, *waits]))).findings
    assert finding.slug == ("left-early" if leave else "rank-missing-from-collective")
    assert finding.ranks == blame
    assert "no_sync()" in finding.remedy
    assert "batches" not in finding.remedy


@pytest.mark.parametrize("stack", ["new", "legacy"])
def test_the_line_that_raised_is_found_in_what_a_job_left(stack: str) -> None:
    """A real job whose rank 1 catches a KeyError and calls sys.exit(1) is reported with the line of the lookup, on both stacks."""
    (finding, *_) = judge(load([str(RECORDED / stack / "12_exit_after_an_exception")])).findings
    assert finding.ranks == [1]
    assert (own_line(finding) or Site("", 0)).function == "lookup"
    assert "12_exit_after_an_exception.py:19" in finding.verdict
