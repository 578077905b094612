"""Perfetto's trace processor reads each trace without a complaint, and finds in it what the logs and ledgers say."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import perfetto_reader
import pytest

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.showing import trace
from ddp_probe.showing.timeline import timeline

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_QUERIES = {
    "slices": "select p.name, t.name, s.name, s.category, s.ts, s.dur from slice s join thread_track k on s.track_id = k.id "
    "join thread t using(utid) join process p using(upid) where s.category not in ('finding', 'failure', 'end') order by s.ts, s.id",
    "moments": "select s.category, s.name, p.name from slice s join process_track k on s.track_id = k.id join process p using(upid) order by s.id",
    "processes": "select name from process where name is not null order by upid",
    "args": "select s.id, s.name, a.key, coalesce(a.string_value, a.int_value) from slice s join args a using(arg_set_id) order by s.id",
    "complaints": "select name, value from stats where severity != 'info' and value > 0",
}
_OPEN = """
ledger 0-1 all_reduce 16 float32 at train.py:12 x3
ledger 0 barrier at train.py:20 open
ledger 1 validate at val.py:7 open
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Diagnosis], Dict[str, List[List[Any]]]]:
    """Take a diagnosis and return what the trace processor finds in its trace."""

    def ask(diagnosis: Diagnosis) -> Dict[str, List[List[Any]]]:
        file = tmp_path_factory.mktemp("trace") / "trace.json"
        file.write_text("".join(trace.chunks(diagnosis)), encoding="ascii")
        return perfetto_reader.ask(file, _QUERIES)

    return ask


@pytest.mark.parametrize("job", ["new/08_uneven_batches", "legacy/00_healthy_runner", "new/12_killed_by_sigkill"])
def test_the_trace_processor_finds_every_span(job: str, read: Callable[..., Any], recorded: Callable[..., Diagnosis]) -> None:
    """Each span of the run is one slice on a track of its rank, its begin and length are right to the microsecond, and nothing was dropped."""
    stack, _, name = job.partition("/")
    diagnosis = recorded(name, stack)
    found, run = read(diagnosis), timeline(diagnosis)
    assert found["complaints"] == []
    assert [row[0].split(",")[0] for row in found["processes"]] == ["rank %d" % lane.rank for lane in run.lanes]
    assert all(lane.host in row[0] and lane.ending in row[0] for lane, row in zip(run.lanes, found["processes"]))
    for lane, (process,) in zip(run.lanes, found["processes"]):
        own = [(row[2], row[3], row[4], row[4] + row[5]) for row in found["slices"] if row[0] == process]
        expected = [(span.name, span.kind, _ns(span.begin - run.begin), _ns(span.end - run.begin)) for span in lane.spans]
        assert sorted(own) == sorted(expected)
    tracks = {row[1] for row in found["slices"]}
    assert tracks <= {"calls", "phases", "collectives", "standstill"}
    moments = [(mark.kind, mark.name[:300]) for lane in run.lanes for mark in lane.marks]
    assert sorted((row[0], row[1]) for row in found["moments"]) == sorted(moments)


def _ns(seconds: float) -> int:
    return round(seconds * 1e6) * 1000


def test_a_collective_is_where_the_ledger_says(read: Callable[..., Any], recorded: Callable[..., Diagnosis]) -> None:
    """The barrier in which a rank waited lasts as long as the lines of its ledger say, with its number, the line of the job, and that it failed."""
    (ledger,) = (RECORDED / "new" / "08_uneven_batches").glob("rank00001.*.ledger.txt")
    (record,) = [line for line in map(json.loads, ledger.read_text(encoding="utf-8").splitlines()) if line.get("op") == "barrier"]
    found = read(recorded("08_uneven_batches"))
    (row,) = [row for row in found["slices"] if row[2] == "barrier 1"]
    assert (row[1], row[3]) == ("collectives", "collective")
    assert row[5] == pytest.approx(record["left_ns"] - record["entered_ns"], abs=2000)
    args = {key: value for _, name, key, value in found["args"] if name == "barrier 1"}
    assert args["args.site"] == "/train/08_uneven_batches.py:25 in main"
    assert (args["args.number"], args["args.failed"], args["args.guilty"]) == (1, 1, 1)


def test_what_never_returned_lasts_to_the_end_and_says_so(read: Callable[..., Any], told: Callable[[str], Diagnosis]) -> None:
    """The one slice of each rank that has not returned says so in its name and its arguments, and reaches to when the log was read."""
    diagnosis = told(_OPEN)
    found, run = read(diagnosis), timeline(diagnosis)
    assert found["complaints"] == []
    unfinished = [row for row in found["slices"] if row[2].endswith(" (has not returned)")]
    assert sorted(row[2] for row in unfinished) == ["barrier 4 (has not returned)", "validate (has not returned)"]
    assert {row[4] + row[5] for row in unfinished} == {_ns(run.end - run.begin)}
    said = {name: value for _, name, key, value in found["args"] if key == "args.ended"}
    assert said == {row[2]: 0 for row in unfinished}


def test_names_of_a_hostile_log_arrive_as_text(read: Callable[..., Any], hostile: Diagnosis) -> None:
    """Whatever stands in names and paths, every slice is there, and no control character has reached the viewer."""
    found = read(hostile)
    assert found["complaints"] == []
    assert len(found["slices"]) == sum(len(lane.spans) for lane in timeline(hostile).lanes)
    texts = [str(cell) for rows in found.values() for row in rows for cell in row]
    assert all(text.isprintable() for text in texts)
    assert any("<script>" in text for text in texts)
