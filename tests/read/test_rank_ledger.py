"""A rank's ledger beside its log: found, kept small, noted if it is torn or another's; and ledgers written as text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ddp_probe.reading import folded_ledger, ledger_text, rank_ledger, whole_ledger
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema

LINES = [
    "ledger 0-1 all_reduce 16 float32 at /job/train.py:12 x3000",
    "ledger 0-1 broadcast 8 int64 root 1 at /job/train.py:14",
    "ledger 0 send 4 float32 to 1 at /job/train.py:15",
    "ledger 1 recv 4 float32 from 0 at /job/train.py:16",
    "ledger 0 backward at /job/train.py:18",
    "ledger 0 backward at /job/train.py:18 open",
    "ledger 1 barrier of 0-1 at /job/train.py:20 open",
]


def _folder(path: Path, **changed: bytes) -> Path:
    for rank, data in ledger_text.written(LINES).items():
        (path / ("rank%05d.node1.7.jsonl" % rank)).write_text('{"event":"process.start","rank":%d,"world_size":2,"pid":7}\n' % rank)
        (path / ("rank%05d.node1.7.ledger" % rank)).write_bytes(changed.get("rank%d" % rank, data))
    return path


def test_a_ledger_belongs_to_the_log_beside_it(tmp_path: Path) -> None:
    """Each rank of a folder has its ledger, and no ledger is taken for a log."""
    run = load([str(_folder(tmp_path))])
    assert not run.texts
    assert not run.inventory.unreadable
    assert len(run.inventory.files) == 2
    kept = [process.ledger for process in run.processes]
    assert [one.rank for one in kept if one is not None] == [0, 1]
    named = load([str(path) for path in sorted(tmp_path.iterdir())])
    assert (len(named.processes), named.texts) == (2, [])


def test_what_is_kept_is_what_was_called() -> None:
    """Of 3 000 records the ring's last ones are kept by number, with the last call, the pairs and the phases."""
    zero, one = (rank_ledger.read("x", data) for data in ledger_text.written(LINES).values())
    assert zero.complete
    (calls,) = zero.groups.values()
    assert (calls.count, calls.first) == (3001, 3003 - schema.RECORDS)  # One place is the send's.
    assert calls.call(3001) == rank_ledger.LedgerCall("broadcast", 8, 1, "int64", 1, whole_ledger.LedgerSite("/job/train.py", 14, "main"))
    assert calls.call(2000) is not None
    assert calls.call(1) is None
    assert zero.pairs == {(calls.group.id, 1, True): 1}
    assert one.pairs == {(calls.group.id, 0, False): 1}
    assert [(phase.name, phase.times, phase.is_open) for phase in zero.phases] == [("backward", 2, True)]
    assert [record.op for record in one.open] == ["barrier"]


def test_ranks_share_what_is_equal() -> None:
    """A second rank with the same calls keeps numbers alone: two bytes of numbers a record and no further call."""
    first, second = (rank_ledger.read("x", data) for data in ledger_text.written(["ledger 0-1 all_reduce 7 float32 at a.py:1 x2000"]).values())
    one, two = next(iter(first.groups.values())), next(iter(second.groups.values()))
    assert one.numbers == two.numbers
    assert len(set(one.numbers)) == 1
    assert one.call(5) is two.call(5)
    assert len(two.numbers.tobytes()) == 4 * 2000


def test_no_ledger_is_an_error(tmp_path: Path) -> None:
    """A rank without a ledger, with an empty one, a torn one, or another process's, is read like any other, and the ledger says what is wrong."""
    whole = ledger_text.written(LINES)[1]
    for data, said in ((b"", "empty"), (b"x" * 900, "not a ledger"), (whole[:40000], "missing"), (whole[:90], "header")):
        process = LoggedProcess("a.jsonl")
        process.ledger_file, process.ledger_data = "a.ledger", data
        assert process.ledger is not None
        assert said in process.ledger.problem
        assert not process.ledger.complete
    foreign = LoggedProcess("a.jsonl")
    foreign.pid = 8
    head = bytearray(whole)
    at = codec.HEADER.offset("pid")
    head[at : at + 4] = (7).to_bytes(4, "little")
    foreign.ledger_file, foreign.ledger_data = "a.ledger", bytes(head)
    assert foreign.ledger is not None
    assert foreign.ledger.problem == "It was written by process 7, and the log beside it by process 8."
    (_folder(tmp_path) / "rank00001.node1.7.ledger").unlink()
    assert load([str(tmp_path)]).ranks[1].ledger is None


def test_a_ledger_alone_says_what_is_missing(tmp_path: Path) -> None:
    """A ledger without its log is not read as a plain log."""
    lonely = tmp_path / "rank00000.node1.9.ledger"
    lonely.write_bytes(b"x")
    run = load([str(lonely)])
    assert run.inventory.unreadable == {str(lonely): "The log that this ledger belongs to is not beside it."}
    assert not run.texts


def test_a_line_that_is_not_one_says_so() -> None:
    """A misspelt operation in an example is an error that names the line."""
    with pytest.raises(ValueError, match="all_reduced"):
        from_lines("ledger 0 all_reduced at a.py:1")


def test_records_are_shown_among_the_events(tmp_path: Path) -> None:
    """`logs` has each record at the time of its call, as an event with the rank, the site and how it ended; a follow goes on with the logs."""
    folder = _folder(tmp_path)
    done = subprocess.run([sys.executable, "-m", "ddp_probe", "logs", "--raw", str(folder)], capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    names = [event["event"] for event in events]
    assert names.count("process.start") == 2
    assert names.count("ledger.all_reduce") > 3000
    barrier = events[-1]
    assert (barrier["event"], barrier["rank"], barrier["state"]) == ("ledger.barrier", 1, "open")
    assert barrier["site"]["line"] == 20
    sent = events[names.index("ledger.send")]
    assert (sent["rank"], sent["peer"], sent["elements"], sent["state"]) == (0, 1, 4, "returned")


def test_a_fold_keeps_whether_there_are_items() -> None:
    """A ledger with a call in a loop over names says so, before it is folded and afterwards; its calls are equal to those of other items."""
    lines = ["ledger 0 all_reduce 4 float32 at t.py:3 item %s" % name for name in ("loss", "size")]
    with_items, without = [rank_ledger.read("x", ledger_text.written(each)[0]) for each in (lines, ["ledger 0 barrier at t.py:3"])]
    assert (with_items.has_items, without.has_items) == (True, False)
    ((one, other),) = [calls.numbers for calls in with_items.groups.values()]
    assert one == other
    folder = folded_ledger.LedgerFolder()
    folded = [folder.fold(ledger) for ledger in (with_items, without)]
    unfolder = folded_ledger.LedgerUnfolder(folder.tables, {})
    assert [unfolder.unfold("x", each).has_items for each in folded] == [True, False]
