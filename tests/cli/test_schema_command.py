"""schema prints what programs need to read the events, the report and the ledger."""

import json
import struct
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.cli import main
from ddp_probe.reading import ledger_text, whole_ledger
from ddp_probe.shared import ledger_schema

_CODES = {"uint16": "H", "uint32": "I", "uint64": "Q", "int32": "i"}


def _printed(capsys: pytest.CaptureFixture[str], *args: str) -> Dict[str, Any]:
    assert main(["schema", *args]) == 0
    found: Dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("args", "page"), [([], "schema.json"), (["events"], "schema.json"), (["report"], "report.json")])
def test_it_prints_the_published_schema(capsys: pytest.CaptureFixture[str], repo: Path, args: List[str], page: str) -> None:
    """The schemas of the events and of the report are those in docs/; that of the events is the default."""
    assert _printed(capsys, *args) == json.loads((repo / "docs" / page).read_text(encoding="utf-8"))


def _unpacked(area: Dict[str, Any], data: bytes, at: int) -> Dict[str, Any]:
    """Read an entry with nothing but the printed layout."""
    return {
        field["name"]: struct.unpack_from("<" + _CODES.get(field["type"], "%ds" % field["size"]), data, at + field["at"])[0]
        for field in area["fields"]
    }


def test_a_ledger_can_be_read_by_the_printed_layout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A program that knows only the printed layout finds the records that the reader finds, with their operations, in a ledger with steps."""
    layout = _printed(capsys, "ledger")
    areas = {area["name"]: area for area in layout["areas"]}
    lines = [
        "ledger 0 step x3 dataloader 2 forward 50 backward 30",
        "ledger 0 all_reduce 16 float32 at t.py:12 x9",
        "ledger 0 barrier at t.py:14 open",
    ]
    (data,) = ledger_text.written(lines).values()
    head = _unpacked(areas["header"], data, 0)
    assert (head["magic"].decode(), head["version"], head["record_size"]) == (layout["magic"], layout["version"], areas["record"]["size"])
    start = head["header_size"] + head["text_size"] + sum(head["%ss" % area] * head["%s_size" % area] for area in ("phase", "sum", "step"))
    count = min(head["records"], (len(data) - start) // head["record_size"])
    records = [_unpacked(areas["record"], data, start + number * head["record_size"]) for number in range(count)]
    names = {code["code"]: code["name"] for code in layout["codes"]["operations"]}
    seen = [names[record["op"]] for record in sorted(records, key=lambda one: one["index"]) if record["index"]]
    (tmp_path / "rank00000.node1.1.ledger").write_bytes(data)
    assert len(seen) == 10
    assert seen == [record.op for record in whole_ledger.read(str(tmp_path / "rank00000.node1.1.ledger")).records]


def test_every_field_and_code_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each field and each code of the declaration is in the layout once, with what it means."""
    layout = _printed(capsys, "ledger")
    fields = [field["name"] for area in layout["areas"] for field in area["fields"]]
    areas = (ledger_schema.PHASE, ledger_schema.SUM, ledger_schema.STEP, ledger_schema.PASS, ledger_schema.RECORD)
    declared = (ledger_schema.HEADER, ledger_schema.TEXT, *areas)
    assert fields == [field.name for fields in declared for field in fields]
    codes = [code["name"] for listed in layout["codes"].values() for code in listed]
    declared_codes = (ledger_schema.OPERATIONS, ledger_schema.PHASES, ledger_schema.STATES, ledger_schema.FLAGS, ledger_schema.TEXTS)
    assert codes == [code.name for listed in declared_codes for code in listed]
    assert all(field["doc"] for area in layout["areas"] for field in area["fields"])
