"""The ways of calls and the passes through phases in the ledger of a real job, and in ledgers written as text."""

from pathlib import Path
from typing import Any, List

import pytest

from ddp_probe.reading import ledger_file, ledger_text, whole_ledger
from ddp_probe.reading.whole_ledger import Ledger

_PROGRAM = Path(__file__).parent / "programs" / "several_ways.py"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: Any, armed: Any, run_python: Any, free_port: Any) -> Ledger:
    """The ledger of the job."""
    folder = tmp_path_factory.mktemp("ways")
    rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ended = run_python([str(_PROGRAM)], env=armed(folder / "runs", **rank), cwd=folder, timeout=200)
    assert ended.returncode == 0, ended.stderr
    (path,) = {path.resolve() for path in (folder / "runs").glob("*/rank*.ledger")}
    return whole_ledger.read(path)


def _functions(record: whole_ledger.Record) -> List[str]:
    return [site.function.rpartition(".")[2] for site in record.way]


def _line(words: str) -> int:
    lines = _PROGRAM.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)


@pytest.mark.slow
def test_two_ways_to_one_line_are_told_apart(trained: Ledger) -> None:
    """Calls of one line have the way of the function that asked for them, from the outermost line of the job to the call's own."""
    calls = [record for record in trained.records if record.op == "all_reduce"]
    assert [_functions(call) for call in calls] == [["<module>", "main", name, "reduced"] for _ in range(4) for name in ("log_loss", "log_size")]
    assert all(call.way[-1] == call.site for call in calls)
    assert calls[0].way[1].line == _line("log_loss(loss)")
    assert len({call.site for call in calls}) == 1


@pytest.mark.slow
def test_the_sequence_tells_what_a_rank_did(trained: Ledger) -> None:
    """Calls and passes lie in one order: a batch, a forward, a backward, a step and two calls; a forward that raised is followed by a batch."""
    usual = ["dataloader", "forward", "backward", "optimizer", "all_reduce", "all_reduce"]
    expected = [*usual, *usual, "dataloader", "forward", *usual, *usual, "dataloader"]
    names = [record.op for record in trained.sequence]
    assert names[names.index("dataloader") : -1] == expected
    raised = [(record.op, record.seq) for record in trained.passes if record.state == "raised"]
    assert raised == [("forward", 3), ("dataloader", 6)]
    forward = [record for record in trained.passes if record.op == "forward"]
    assert {record.site.line for record in forward if record.site is not None} == {_line("model(inputs).sum()")}
    assert [record.seq for record in forward] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_text_keeps_ways_and_passes(trained: Ledger) -> None:
    """The lines of a ledger with ways and passes are the ledger, to the byte."""
    data = Path(trained.path).read_bytes()
    lines = ledger_file.as_lines(data).encode()
    assert ledger_file.of_lines(lines) == data
    assert whole_ledger.parse(lines, trained.path) == trained


def test_a_way_can_be_written_as_text() -> None:
    """A line with `via` has these lines of the job before its own; phases are passes too."""
    lines = ["ledger 0 barrier at a.py:9:meet via a.py:3 a.py:5:fit", "ledger 0 backward at a.py:6:fit raised", "ledger 0 forward at a.py:5:fit open"]
    (data,) = ledger_text.written(lines).values()
    ledger = whole_ledger.parse(data)
    assert [(site.line, site.function) for site in ledger.sequence[0].way] == [(3, "main"), (5, "fit"), (9, "meet")]
    assert [(record.op, record.seq, record.state) for record in ledger.passes] == [("backward", 1, "raised"), ("forward", 1, "open")]
    assert [record.op for record in ledger.sequence] == ["barrier", "backward", "forward"]


def test_a_ledger_of_an_older_version_has_no_ways() -> None:
    """A record of version 2, with four bytes for its group and for its line, is read as it was written."""
    old = (
        '{"ledger":2,"lines":3,"text_size":96,"records":64,"rank":0,"world_size":2}\n'
        '{"text":1,"kind":"site","is":"a.py\\n4\\nmain"}\n'
        '{"text":2,"kind":"group","is":"{\\"id\\":\\"g\\",\\"size\\":2,\\"ranks\\":\\"0-1\\",\\"nth\\":1}"}\n'
        '{"record":1,"entered_ns":5,"seq":1,"elements":8,"group":2,"site":1,"tensors":1,"op":"all_reduce","left_ns":9,"state":"returned"}\n'
    )
    ledger = whole_ledger.parse(ledger_file.of_lines(old.encode()))
    (record,) = ledger.records
    assert ledger.problem == ""
    assert (record.op, record.elements, record.way, record.peer, record.tensors) == ("all_reduce", 8, (), -1, 1)
    assert record.site is not None
    assert record.group is not None
    assert (record.site.line, record.group.ranks) == (4, "0-1")
