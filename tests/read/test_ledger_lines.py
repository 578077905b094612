"""A ledger as lines of JSON: the same ledger without loss, wherever a ledger is read."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

from ddp_probe.reading import ledger_file, ledger_text, rank_ledger, whole_ledger
from ddp_probe.reading.load_run import load
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.showing.watch import watched_files

LINES = [
    "ledger 0-1 all_reduce 16 float32 at /job/train.py:12 x3000",
    "ledger 0-1 broadcast 8 int64 root 1 at /job/train.py:14 async",
    "ledger 0 send 4 float32 to 1 at /job/train.py:15",
    "ledger 1 recv 4 float32 from 0 at /job/train.py:16",
    "ledger 0 backward at /job/train.py:18 open",
    "ledger 1 barrier of 0-1 at /job/train.py:20 open",
]


def _kept(found: rank_ledger.RankLedger) -> List[Any]:
    groups = [(name, calls.first, list(calls.numbers), calls.last) for name, calls in found.groups.items()]
    return [groups, *found._replace(groups={}, path="")]


def _folder(path: Path, *, text: bool) -> Path:
    path.mkdir()
    for rank, data in ledger_text.written(LINES).items():
        base = path / ("rank%05d.node1.7" % rank)
        base.with_name(base.name + ".jsonl").write_text('{"event":"process.start","rank":%d,"world_size":2,"pid":0}\n' % rank)
        if text:
            base.with_name(base.name + schema.TEXT_SUFFIX).write_text(ledger_file.as_lines(data))
        else:
            base.with_name(base.name + schema.SUFFIX).write_bytes(data)
    return path


def test_no_byte_is_lost() -> None:
    """The text of a ledger gives the bytes that it is of, also when its ring has gone round."""
    for data in ledger_text.written(LINES).values():
        text = ledger_file.as_lines(data)
        assert ledger_file.of_lines(text.encode()) == data
        assert whole_ledger.parse(text.encode()) == whole_ledger.parse(data)
        assert whole_ledger.parse(text.encode(), last=3) == whole_ledger.parse(data, last=3)
        assert _kept(rank_ledger.read("x", text.encode())) == _kept(rank_ledger.read("x", data))


def test_what_is_torn_stays_torn() -> None:
    """Records that are not believed, unknown codes and a cut end are in the text as they are in the file."""
    (data,) = ledger_text.written(["ledger 0 all_reduce 16 float32 at /job/train.py:12 x200", "ledger 0 validate open"]).values()
    draw, first = random.Random(5), len(data) - 256 * codec.RECORD.size
    for _ in range(40):
        changed = bytearray(data)
        for _ in range(9):
            changed[draw.randrange(first - schema.PHASE_ROWS * codec.PHASE.size, len(data))] = draw.randrange(256)
        cut = bytes(changed[: draw.randrange(first, len(data) + 1)])
        back = whole_ledger.parse(ledger_file.as_lines(cut).encode())
        assert back == whole_ledger.parse(cut)
        assert not cut[first:].strip(b"\0") or back.records or back.torn


def test_any_text_is_read_without_an_error() -> None:
    """A text that is cut, or changed by hand, gives a ledger with a sentence about what is wrong with it, and none that looks complete."""
    (data,) = ledger_text.written(["ledger 0 all_reduce 16 float32 at /job/train.py:12 x9"]).values()
    text = ledger_file.as_lines(data).encode()
    assert rank_ledger.read("x", text).complete
    for size in range(len(b'{"ledger":'), len(text)):
        assert whole_ledger.parse(text[:size]).problem, size
        assert not rank_ledger.read("x", text[:size]).complete
    for old, new in ((b'"all_reduce"', b'"reduced"'), (b'{"ledger":3', b'{"ledger":7'), (b'"record":3', b'"record":"x"'), (b'"is":', b'"was":')):
        assert whole_ledger.parse(text.replace(old, new)).problem
    with pytest.raises(ValueError, match="Line 2 of the ledger is not valid"):
        ledger_file.of_lines(text.split(b"\n")[0] + b"\n" + b"[" * 100000 + b"\n")
    with pytest.raises(ValueError, match="not a ledger"):
        ledger_file.as_lines(b"x" * 900)


def test_names_in_the_text_may_grow() -> None:
    """If paths are replaced by longer ones, the texts take the room that they need."""
    (data,) = ledger_text.written(["ledger 0 all_reduce 16 float32 at /job/train.py:12"]).values()
    long = "/work/" + "x" * 70_000
    (record,) = whole_ledger.parse(ledger_file.as_lines(data).replace("/job/train.py", long).encode()).records
    assert record.site == whole_ledger.LedgerSite(long, 12, "main")


def test_a_run_with_texts_reads_like_the_run(tmp_path: Path) -> None:
    """The reader, `logs` and `watch` find the texts beside the logs, and take no text for a plain log."""
    shown = []
    for text in (False, True):
        folder = _folder(tmp_path / str(text), text=text)
        run = load([str(folder)])
        named = load([str(path) for path in sorted(folder.iterdir())])
        assert (run.texts, named.texts, len(named.processes)) == ([], [], 2)
        done = subprocess.run([sys.executable, "-m", "ddp_probe", "logs", "--raw", str(folder)], capture_output=True, text=True, check=True)
        found = watched_files.ledgers([str(folder)])
        assert [Path(watched_files.log_of(path)).exists() for path in found] == [True, True]
        shown.append(
            ([_kept(one.ledger) for one in run.processes if one.ledger is not None], done.stdout, [p.whole_ledger().records for p in run.processes])
        )
    assert shown[0] == shown[1]
    assert len(shown[0][0]) == 2
    assert "ledger.barrier" in shown[0][1]


def test_the_file_comes_before_its_text(tmp_path: Path) -> None:
    """If both are there, a ledger is read once, from the file."""
    folder = _folder(tmp_path / "run", text=False)
    for path in list(folder.glob("*.ledger")):
        path.with_name(path.name + ".txt").write_text("x")
    assert load([str(folder)]).processes[0].ledger_file.endswith(".ledger")
    assert all(path.endswith(".ledger") for path in watched_files.ledgers([str(folder)]))


def test_a_line_is_what_the_page_shows() -> None:
    """The lines of docs/ledger.md are a ledger."""
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
    text = "".join(line.strip() + "\n" for line in page.splitlines() if line.startswith("    {"))
    found = whole_ledger.parse(text.encode())
    assert (found.problem, [one.op for one in found.records], found.records[0].site) == (
        "",
        ["all_reduce"],
        whole_ledger.LedgerSite("/job/train.py", 12, "main"),
    )
    assert json.loads(text.splitlines()[-1])["state"] == found.records[0].state
