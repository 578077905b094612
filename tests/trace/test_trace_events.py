"""The text of a trace: valid in the Trace Event Format, ASCII, with tracks that no viewer has to untangle, and of bounded size."""

import json
import random
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.showing import trace
from ddp_probe.showing.timeline import COLLECTIVE, Lane, Span
from ddp_probe.showing.trace import tracks

_REQUIRED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
    "M": {"name", "pid", "args"},
    "C": {"name", "cat", "ts", "pid", "args"},
    "i": {"name", "cat", "ts", "pid", "tid", "s", "args"},
}
_OPEN = """
ledger 0-1 all_reduce 16 float32 at train.py:12 x3
ledger 0 barrier at train.py:20 open
ledger 1 validate at val.py:7 open
"""


def _document(diagnosis: Diagnosis) -> Dict[str, Any]:
    text = "".join(trace.chunks(diagnosis))
    assert text.isascii()
    return dict(json.loads(text))


def _checked(diagnosis: Diagnosis) -> List[Dict[str, Any]]:
    """Return the events, each of which has what its kind needs."""
    events: List[Dict[str, Any]] = _document(diagnosis)["traceEvents"]
    for event in events:
        assert _REQUIRED[event["ph"]] <= set(event)
        assert all(isinstance(event[name], int) and event[name] >= 0 for name in ("ts", "dur", "pid", "tid") if name in event), event
    named = {(event["pid"], event.get("tid")) for event in events if event["name"] in ("process_name", "thread_name")}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"} <= named
    assert {event["pid"] for event in events} == {pid for pid, tid in named if tid is None}
    return events


@pytest.mark.parametrize("job", ["new/00_healthy_runner", "legacy/08_uneven_batches", "new/10_rank_never_started", "legacy/12_killed_by_sigkill"])
def test_each_event_has_what_its_kind_needs(job: str, recorded: Callable[..., Diagnosis]) -> None:
    """Runs that do well, hang and die make events of three kinds, with every field that the format asks for, and one process for each rank."""
    stack, _, name = job.partition("/")
    diagnosis = recorded(name, stack)
    events = _checked(diagnosis)
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    ranks = sorted({*diagnosis.run.ranks, *diagnosis.run.missing})
    assert [text.partition(",")[0] for text in processes] == ["rank %d" % rank for rank in ranks]
    assert ("named by a finding" in "".join(processes)) == any(finding.ranks for finding in diagnosis.findings)
    told = " ".join(event["name"] for event in events if event["ph"] == "i")
    assert all(finding.id in told for finding in diagnosis.findings)


def test_the_document_says_what_it_is_of(recorded: Callable[..., Diagnosis]) -> None:
    """Beside the events are the run, the verdict and when it began, and no unit of time, which readers understand differently."""
    document = _document(recorded("12_killed_by_sigkill"))
    assert set(document) == {"otherData", "traceEvents"}
    about = document["otherData"]
    assert about["form"] == "ddp_probe trace"
    assert about["verdict"] == "found"
    assert about["begin"].startswith("2026-11-22T08:23:08.17")


def test_what_never_returned_says_so(told: Callable[[str], Diagnosis]) -> None:
    """An event that has no end is drawn to the end of its rank, with "ended" false and words in its name; the others have no such argument."""
    events = [event for event in _checked(told(_OPEN)) if event["ph"] == "X"]
    unfinished = {event["name"] for event in events if event["args"].get("ended") is False}
    assert unfinished == {"barrier 4 (has not returned)", "validate (has not returned)"}
    assert unfinished == {event["name"] for event in events if "has not returned" in event["name"]}


def test_an_event_names_the_line_of_the_job_and_of_the_log(recorded: Callable[..., Diagnosis]) -> None:
    """A call of the log has the line of the job that made it and the line of the log that tells it, as FILE:LINE."""
    (event,) = [event for event in _checked(recorded("12_killed_by_sigkill")) if event["name"] == "ddp.init" and event["pid"] == 13899]
    assert event["args"]["site"] == "/train/12_killed_by_sigkill.py:21 in main"
    assert event["args"]["log"] == "rank00001.node1.13899.jsonl:4"


def test_hostile_names_are_text(hostile: Diagnosis) -> None:
    """Names and paths that try to end a string, or to turn the direction of the text, are in the document as visible characters."""
    events = _checked(hostile)
    texts = [text for event in events for text in [event["name"], *event["args"].values()] if isinstance(text, str)]
    assert all(text.isprintable() for text in texts)
    assert sum("</script><script>alert(1)</script>" in text for text in texts) > 4
    assert any("\\u202e" in text for text in texts)


def test_spans_of_one_track_are_apart_or_inside_each_other() -> None:
    """Of spans that begin and end anywhere, each is on one track, and on no track do two overlap without one being inside the other."""
    draw = random.Random(12)  # the same spans each time
    for size in (1, 2, 10, 60):
        spans = []
        for number in range(size):
            begin = draw.randrange(40)
            end = begin + draw.randrange(20)
            spans.append(Span(begin / 1e6, end / 1e6, True, COLLECTIVE, "", None, None, False, False, number))
        found = list(tracks(Lane(0, "", 1, False, spans, 0.0, 1.0, ""), 0.0))
        assert sorted(span.number for track in found for _, _, span in track.placed) == list(range(size))
        for track in found:
            placed = [(begin, end) for begin, end, _ in track.placed]
            assert placed == sorted(placed, key=lambda one: (one[0], -one[1]))
            for place, (begin, end) in enumerate(placed):
                assert all(later >= end or until <= end for later, until in placed[place + 1 :] if later >= begin)


def test_the_names_of_tracks_say_what_is_not_shown(told: Callable[[str], Diagnosis], monkeypatch: pytest.MonkeyPatch) -> None:
    """If calls of a long ledger are left out, the rank's track of collectives, the rank, the document and the note say how many."""
    monkeypatch.setattr(trace, "CALLS", 100)
    diagnosis = told("ledger 0-1 all_reduce 16 float32 x2000\n")
    events = _checked(diagnosis)
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"calls", "collectives (1900 calls not shown)"}
    assert {event["args"]["labels"] for event in events if event["name"] == "process_labels"} == {"1900 earlier calls not shown"}
    assert _document(diagnosis)["otherData"]["left out"] == "3800 earlier calls not shown"


def test_a_trace_comes_in_pieces(told: Callable[[str], Diagnosis]) -> None:
    """The text comes in pieces of at most one event each: no rank and no run is one big value in memory."""
    pieces = list(trace.chunks(told("ledger 0-15 all_reduce 16 float32 x100\n")))
    assert len(pieces) > 16 * 100
    assert max(map(len, pieces)) < 1000


def test_memory_is_a_counter_of_each_device_and_of_the_host(told: Callable[[str], Diagnosis]) -> None:
    """What device.state has of a rank is a counter track: bytes by name, at the times of the lines."""
    log = """
{"event":"process.start","rank":0,"world_size":1,"ts":"2026-11-24T12:00:00.000000Z"}
{"event":"device.state","rank":0,"ts":"2026-11-24T12:00:01.000000Z","when":"periodic","devices":[{"device":"gcu:0","allocated":5,"reserved":9}]}
{"event":"device.state","rank":0,"ts":"2026-11-24T12:00:02.000000Z","when":"end","system":{"rss":7}}
{"event":"process.end","rank":0,"ts":"2026-11-24T12:00:03.000000Z","exit_code":0}
"""
    counters = [(event["name"], event["ts"], event["args"]) for event in _checked(told(log)) if event["ph"] == "C"]
    assert counters == [("memory of gcu:0", 1000000, {"allocated": 5, "reserved": 9}), ("memory of host", 2000000, {"resident": 7})]
