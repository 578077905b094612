"""The run over time has what the logs and the ledgers have, for every kind of run, and its size is bounded."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading import fold
from ddp_probe.reading.load_run import load
from ddp_probe.showing import timeline
from ddp_probe.showing.timeline import Lane, Span

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_JOBS = sorted("%s/%s" % (folder.parent.name, folder.name) for folder in RECORDED.glob("*/*") if any(folder.glob("*.jsonl")))
_HANG = """
ledger 0-3 all_reduce 16 float32 at train.py:12 x3
ledger 0-2 barrier at train.py:20 open
ledger 3 validate at val.py:7 open
"""


def _kinds(lane: Lane) -> Dict[str, List[Span]]:
    found: Dict[str, List[Span]] = {}
    for span in lane.spans:
        found.setdefault(span.kind, []).append(span)
    return found


@pytest.mark.sample(8)
@pytest.mark.parametrize("job", _JOBS)
def test_every_span_lies_in_its_lane(job: str, recorded: Callable[..., Diagnosis]) -> None:
    """In each recorded run the spans and marks are in order, lie in their lane, and what has not ended reaches to when the process was last seen."""
    stack, _, name = job.partition("/")
    diagnosis = recorded(name, stack)
    found = timeline.timeline(diagnosis)
    assert (found.shown, found.of) == (len(found.lanes), len(found.lanes))
    assert {lane.pid for lane in found.lanes} - {0} == {process.pid for process in diagnosis.run.processes}
    for lane in found.lanes:
        assert found.begin <= lane.begin <= lane.end <= found.end
        assert [span.begin for span in lane.spans] == sorted(span.begin for span in lane.spans)
        assert [mark.when for mark in lane.marks] == sorted(mark.when for mark in lane.marks)
        assert all(lane.begin <= span.begin <= span.end <= lane.end for span in lane.spans)
        assert {span.kind for span in lane.spans} <= set(timeline.KINDS)
        assert {span.end for span in lane.spans if not span.ended} <= {lane.end}
    guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
    assert {lane.rank for lane in found.lanes if lane.guilty} == guilty & {*diagnosis.run.ranks, *diagnosis.run.missing}


def test_a_healthy_run_has_its_calls_phases_and_collectives(recorded: Callable[..., Diagnosis]) -> None:
    """A run that does well has spans of every kind that it went through, each ended, none failed, none guilty, and two clean ends."""
    found = timeline.timeline(recorded("00_healthy_runner"))
    first = _kinds(found.lanes[0])
    assert set(first) == {"start", "init", "device", "wrap", "save", "phase", "collective"}
    assert [span.name for span in first["collective"]] == ["broadcast %d" % number for number in range(1, 7)]
    assert [span.number for span in first["collective"]] == list(range(1, 7))
    assert {"train", "forward", "backward", "optimizer", "checkpoint"} <= {span.name for span in first["phase"]}
    assert all(span.ended and not span.failed and not span.guilty for lane in found.lanes for span in lane.spans)
    assert [(lane.rank, lane.ending, lane.guilty, lane.left_out) for lane in found.lanes] == [(0, "ended", False, 0), (1, "ended", False, 0)]
    assert [[mark.kind for mark in lane.marks] for lane in found.lanes] == [["end"], ["end"]]


def test_the_killed_rank_is_guilty_of_its_last_span(recorded: Callable[..., Diagnosis]) -> None:
    """A rank that SIGKILL ended is guilty, the last thing that it did is, and the span of another rank that lost it has failed."""
    zero, one = timeline.timeline(recorded("12_killed_by_sigkill")).lanes
    assert (zero.guilty, one.guilty, one.ending) == (False, True, "killed SIGKILL")
    assert [(span.kind, span.name, span.site and span.site.line) for span in one.spans if span.guilty] == [("phase", "backward", 35)]
    assert [span.name for span in zero.spans if span.failed] == ["backward"]
    assert [mark.kind for mark in zero.marks] == ["failure", "finding", "end"]


@pytest.mark.parametrize("stack", ["new", "legacy"])
def test_a_time_without_movement_is_a_span(stack: str, recorded: Callable[..., Diagnosis]) -> None:
    """A rank that waited in a barrier has a hang in that barrier, which began after the barrier did and ended with its failure."""
    lanes = timeline.timeline(recorded("08_uneven_batches", stack)).lanes
    hang = _kinds(lanes[1])["hang"][-1]
    barrier = _kinds(lanes[1])["collective"][-1]
    assert (hang.name, hang.number, hang.ended, hang.failed) == ("hang in barrier 1", 1, True, False)
    assert barrier.name == "barrier 1"
    assert barrier.failed
    assert barrier.guilty
    assert barrier.begin <= hang.begin < hang.end <= lanes[1].end
    assert hang.at is not None
    assert hang.at.file.endswith(".jsonl")


def test_what_never_returned_lasts_until_now(told: Callable[[str], Diagnosis]) -> None:
    """Ranks that wait in a running job have a barrier without an end, up to when the log is read; the guilty one's last span is what keeps it."""
    found = timeline.timeline(told(_HANG))
    assert len(found.lanes) == 4
    for lane in found.lanes:
        (last,) = [span for span in lane.spans if not span.ended]
        assert last.end == lane.end == found.end
        assert lane.ending == "running"
        assert (last.name, lane.guilty, last.guilty) == (("validate", True, True) if lane.rank == 3 else ("barrier 4", False, last.guilty))
    calls = _kinds(found.lanes[0])["collective"]
    assert [span.detail.partition(",")[0] for span in calls] == [*["16 elements of float32"] * 3, calls[-1].detail]


def test_of_a_long_ledger_the_last_and_the_longest_calls_are_kept(told: Callable[[str], Diagnosis]) -> None:
    """Of two thousand calls a lane has as many as it was asked for: the one that is still open, the last ones, and how many are not shown."""
    log = "ledger 0-1 all_gather 8 float32 async open\n" + "ledger 0-1 all_reduce 16 float32 x2000\n"
    for lane in timeline.timeline(told(log), calls=40).lanes:
        numbers = [span.number for span in lane.spans if span.kind == "collective"]
        assert len(numbers) == 40
        assert numbers[0] == 1
        assert numbers[-20:] == list(range(1982, 2002))
        assert lane.left_out == 2001 - 40


def test_many_lanes_share_a_bound(told: Callable[[str], Diagnosis], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many calls are asked for, the more lanes there are the fewer calls each of them has, and not more lanes than LANES are made."""
    monkeypatch.setattr(timeline, "_ALL", 800)
    monkeypatch.setattr(timeline, "LANES", 10)
    found = timeline.timeline(told("ledger 0-15 all_reduce 16 float32 x100\n"), calls=10**6)
    assert (found.shown, found.of) == (10, 16)
    assert {sum(span.kind == "collective" for span in lane.spans) for lane in found.lanes} == {80}
    assert {lane.left_out for lane in found.lanes} == {20}


def test_the_guilty_lane_is_kept(told: Callable[[str], Diagnosis]) -> None:
    """Of four ranks two lanes are the guilty one and the lowest, in the order of ranks."""
    found = timeline.timeline(told(_HANG), limit=2)
    assert ([lane.rank for lane in found.lanes], found.shown, found.of) == ([0, 3], 2, 4)


def test_a_guilty_rank_without_a_file_has_an_empty_lane(recorded: Callable[..., Diagnosis]) -> None:
    """A rank that a finding names and that wrote nothing is there, with nothing in it."""
    lane = timeline.timeline(recorded("10_rank_never_started")).lanes[1]
    assert (lane.rank, lane.pid, lane.guilty, lane.spans, lane.ending) == (1, 0, True, [], "no file")


def test_a_plain_log_has_no_lanes(told: Callable[[str], Diagnosis]) -> None:
    """The text that a job printed has no times, so nothing is drawn of it."""
    found = timeline.timeline(told('Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nValueError: no\n'))
    assert found == timeline.Timeline(0.0, 0.0, [], 0, 0)


def test_folds_have_the_same_spans(recorded: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """Read from the fold of its host, a run has the spans that it has when read from its files."""
    with open(tmp_path / "node1.fold", "wb") as file:
        fold.write([str(RECORDED / "new" / "08_uneven_batches")], file, cores=1)
    folded, direct = timeline.timeline(judge(load([str(tmp_path)]))), timeline.timeline(recorded("08_uneven_batches"))
    assert [[span._replace(at=None) for span in lane.spans] for lane in folded.lanes] == [
        [span._replace(at=None) for span in lane.spans] for lane in direct.lanes
    ]
    assert any(span.kind == "collective" for span in folded.lanes[0].spans + folded.lanes[1].spans)


def _copied(job: str, folder: Path, change: Callable[[List[Dict[str, Any]]], str]) -> Diagnosis:
    for file in sorted((RECORDED / "new" / job).glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        (folder / file.name).write_text(change(lines), encoding="utf-8")
    return judge(load([str(folder)]))


def test_lines_without_times_are_drawn_in_their_order(tmp_path: Path) -> None:
    """A log whose lines have no time has spans in the order of the lines."""
    untimed = {"ts": "", "mono_ns": 0}
    diagnosis = _copied("00_healthy_ddp", tmp_path, lambda lines: "".join(json.dumps({**line, **untimed}) + "\n" for line in lines))
    for lane in timeline.timeline(diagnosis).lanes:
        assert [span.name for span in lane.spans][:3] == ["process.start", "dist.init_process_group", "ddp.init"]
        assert lane.begin <= lane.spans[0].begin <= lane.end


def test_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    """A rank whose last line is cut off in the middle of a call's end was last seen at the line before, in that call."""

    def torn(lines: List[Dict[str, Any]]) -> str:
        rank = lines[0].get("rank")
        kept = lines[: [line["event"] for line in lines].index("ddp.init") + 2] if rank is not None else lines
        text = "".join(json.dumps(line) + "\n" for line in kept)
        return text if rank is None else text[:-30]

    for lane in timeline.timeline(_copied("00_healthy_ddp", tmp_path, torn)).lanes:
        assert (lane.spans[-1].name, lane.spans[-1].ended, lane.spans[-1].end) == ("ddp.init", False, lane.end)
