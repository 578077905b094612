"""The codec of the ledger: what the hot paths pack by position is read by name, in either byte order, and nothing else knows the bytes."""

import ast
import mmap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator

import pytest
import torch
from ledger_books import in_the_other_order

import ddp_probe
from ddp_probe.reading import ledger_text, rank_ledger, whole_ledger
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import PLACES
from ddp_probe.traced.ledger import phases
from ddp_probe.traced.ledger.calls import NO_PEER, Frames, Here, hooks
from ddp_probe.traced.ledger.groups import Known, Sums
from ddp_probe.traced.patching import Switch
from ddp_probe.traced.record.ledger_memory import Author, LedgerFile, create

_PACKAGE = Path(ddp_probe.__file__).parent


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LedgerFile]:
    """A ledger of this process."""
    made = create(str(tmp_path / "rank00003.host.7"), Author(3, 8, 55, "", "host"))
    yield made
    made.close()


def _calls(file: LedgerFile, group: Known) -> Any:
    groups: Any = SimpleNamespace(default=group, by_id={})
    return _hooks(file, groups, Frames())


def _hooks(file: LedgerFile, groups: Any, frames: Frames) -> Any:
    told = (lambda *_: True), _nothing, _nothing
    return hooks(file, Switch(), groups, Sums(file.map), Here(), frames, *told)[0]


def _nothing(*_: int) -> None:
    """Stand for what writes a line of a call."""


def _watched(begin: Callable[..., Any], *args: Any) -> Any:
    """Stand for the function that is watched: the line of the job is that of its caller."""
    return begin(*args)


def test_a_record_has_its_fields_by_name(file: LedgerFile) -> None:
    """Each value of a call is in the field that is declared for it; no two fields of this call have one value that could be mistaken."""
    first, second = Known(40, (0, 1), lambda: None), Known(41, (0, 1), lambda: None)
    for _ in range(2):
        _calls(file, second).begin(18, None, NO_PEER, None, None, False)
    begin, since = _calls(file, first).begin, time.monotonic_ns()
    for _ in range(3):
        _watched(begin, 3, torch.zeros(50, dtype=torch.float64), 6, None, None, True)
    row = codec.RECORD.read(file.map, PLACES.records + 3 * codec.RECORD.size)
    entered = row.pop("entered_ns")
    assert since <= entered <= time.monotonic_ns()
    assert file.text_of(schema.SITE, row["site"]).startswith(__file__)
    assert file.text_of(schema.WAY, row["way"]).split()[-1] == str(row["site"])
    assert file.text_of(schema.DTYPE, row["dtype"]) == "float64"
    assert file.text_of(schema.DEVICE, row["device"]) == "cpu"
    texts = {name: row[name] for name in ("site", "way", "dtype", "device")}
    assert len(set(texts.values())) == 4
    numbers = {"index": 3, "index_again": 3, "seq": 3, "elements": 50, "group": 40, "peer": 6, "tensors": 1, "op": 3, "flags": schema.ASYNC}
    assert row == {**texts, **numbers, "waited_ns": 0, "left": 0, "outer": 0, "item": 0}


def test_a_call_inside_another_names_it(file: LedgerFile) -> None:
    """The number of the outer call and the flag of an inner one are in their fields."""
    frames = Frames()
    frames.know(test_a_call_inside_another_names_it.__code__, 0)
    groups: Any = SimpleNamespace(default=Known(40, (0, 1), lambda: None), by_id={})
    begin = _hooks(file, groups, frames).begin
    begin(18, None, NO_PEER, None, None, False)
    _watched(begin, 1, None, NO_PEER, None, None, False)
    row = codec.RECORD.read(file.map, PLACES.records + 2 * codec.RECORD.size)
    assert (row["outer"], row["seq"], row["flags"], row["op"]) == (1, 1, schema.INNER, 1)


def test_a_pass_and_its_phase_have_their_fields_by_name(file: LedgerFile) -> None:
    """A forward pass whose gradients are held back is a row of the ring and one of the table, each value in its field."""
    forward = phases.hooks(file, Switch(), phases.StepRing(file.map), Here(), Frames())[phases.CODES["forward"]]
    model, since = torch.nn.Linear(1, 1), time.monotonic_ns()
    model.__dict__["require_backward_grad_sync"] = False
    for _ in range(3):
        token = _watched(forward.begin, model)
        forward.end(token, None)
    _watched(forward.begin, model)
    row = codec.PASS.read(file.map, PLACES.passes + 4 * codec.PASS.size)
    table = codec.PHASE.read(file.map, PLACES.phases + 2 * codec.PHASE.size)
    assert since <= row["entered_ns"] == table["entered_ns"] <= time.monotonic_ns()
    assert file.text_of(schema.SITE, row["site"]).startswith(__file__)
    assert file.text_of(schema.WAY, row["way"]).split()[-1] == str(row["site"])
    assert {name: row[name] for name in ("index", "index_again", "count", "left", "phase", "flags")} == {
        "index": 4,
        "index_again": 4,
        "count": 4,
        "left": 0,
        "phase": 3,
        "flags": schema.HELD_BACK,
    }
    assert table == {"stamp": 4, "stamp_again": 4, "count": 4, "left": 0, "site": row["site"], "flags": 0, "entered_ns": row["entered_ns"]}


def test_a_step_has_its_fields_by_name(file: LedgerFile) -> None:
    """The time of each phase is in the part of the step that is declared for it."""
    ring, thread = phases.StepRing(file.map), Here().thread
    ring.end(thread, 900, 0)
    took = {"dataloader": 1, "forward": 2, "backward": 3, "optimizer": 4, "save": 5, "load": 6, "checkpoint": 7, "validate": 8, "test": 9}
    for name, time_ns in took.items():
        ring.step[3][phases.CODES[name]] = time_ns
    ring.end(thread, 2000, 70)
    assert codec.STEP.read(file.map, PLACES.steps + 2 * codec.STEP.size) == {
        "index": 2,
        "began_ns": 900,
        "ended_ns": 2000,
        "dataloader_ns": 1,
        "forward_ns": 2,
        "backward_ns": 3,
        "optimizer_ns": 4,
        "saving_ns": 11,
        "evaluating_ns": 17,
        "waiting_ns": 70,
        "index_again": 2,
    }


def test_a_sum_has_its_fields_by_name() -> None:
    """What has been added up for a line is in its fields."""
    with mmap.mmap(-1, PLACES.end) as memory:
        sums = Sums(memory)
        sums.row(3, 40, 50)[:3] = (6, 700, 250, (1 << 64) + 9, 11), 3, 300
        sums.put()
        row = codec.SUM.read(memory, PLACES.sums + codec.SUM.size)
    assert row == {"op": 3, "group": 40, "site": 50, "reserved": 0, "calls": 6, "inside_ns": 700, "longest_ns": 300, "entered_ns": 9}


def test_a_whole_ledger_of_the_other_byte_order_is_read() -> None:
    """Calls, passes, phases, sums, steps and texts of a machine of the other byte order are the same, in each form that is read."""
    lines = [
        "ledger 0-1 all_reduce 16 float32 at train.py:12 via main.py:3 x70 takes 5",
        "ledger 0 forward held at train.py:14",
        "ledger 0 send 4 to 1 item loss handler 15 thread",
        "ledger 0 step x40 dataloader 2 forward 50 backward 30",
        "ledger 0 barrier at train.py:20 open",
    ]
    data = ledger_text.written(lines)[0]
    other = in_the_other_order(data)
    assert other != data
    here, there = whole_ledger.parse(data), whole_ledger.parse(other)
    assert here == there
    assert all((here.records, here.passes, here.phases, here.sums, here.steps.numbers, here.groups))
    assert repr(rank_ledger.read("", data)._replace(groups={})) == repr(rank_ledger.read("", other)._replace(groups={}))


def _knows_bytes(path: Path) -> bool:
    """Tell whether a module packs or reads bytes by formats of its own."""
    names = {"Struct", "pack", "pack_into", "unpack", "unpack_from", "iter_unpack", "calcsize"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "struct" and node.attr in names:
            return True
    return False


def test_nothing_else_knows_the_bytes() -> None:
    """Of all modules that know the ledger's declaration, one has formats of bytes: the codec."""
    sources: Dict[Path, str] = {path: path.read_text(encoding="utf-8") for path in sorted(_PACKAGE.rglob("*.py"))}
    about = [path for path, source in sources.items() if "ledger_schema" in source or "ledger_codec" in source]
    assert len(about) > 20
    assert [path.name for path in about if _knows_bytes(path)] == ["ledger_codec.py"]
    marks = [path.name for path, source in sources.items() if "BYTE_ORDER.to_bytes" in source]
    assert marks == ["ledger_codec.py"]
