"""A run that goes on is bundled as it is, and a bundle of it says later what was so then."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only Linux tells whether a process runs")


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


def test_rank_that_ran_then(tmp_path: Path, child: "subprocess.Popen[bytes]", bundle: Any, report: Any) -> None:
    """A rank that ran when the bundle was made is running in the report over it, after its end too, and its half-written line is a torn one."""
    run = tmp_path / "run"
    run.mkdir()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    born = int(Path("/proc/%d/stat" % child.pid).read_text().rpartition(")")[2].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    start = {"event": "process.start", "phase": "point", "ts": stamp, "mono_ns": 1, "seq": 0, "rank": 0, "world_size": 1, "role": "rank"}
    line = json.dumps({**start, "host": platform.node(), "pid": child.pid, "born": born, "boot": boot})
    (run / ("rank00000.here.%d.jsonl" % child.pid)).write_text(line + '\n{"event":"ddp.in')
    made = bundle([run], tmp_path / "b.tar.gz")
    before = json.loads(report(run)[1])
    child.kill()
    child.wait()
    after, there = json.loads(report(made)[1]), json.loads(report(run)[1])
    assert [each["ranks"][0]["end"] for each in (before, after, there)] == ["running", "running", "no end line"]
    assert (after["verdict"], after["findings"], after["undecided"]) == (before["verdict"], before["findings"], before["undecided"])
    assert [list(each["inventory"]["skipped"].values()) for each in (before, after)] == [[{"torn": 1}], [{"torn": 1}]]


def test_ledger_that_is_being_written(tmp_path: Path) -> None:
    """A record that changes between two readings is not taken; the records around it are."""
    from ddp_probe.reading import ledger_file, whole_ledger
    from ddp_probe.shared import ledger_codec as codec
    from ddp_probe.shared import ledger_schema as schema

    size = codec.RECORD.size
    start = schema.HEADER_BYTES + schema.TEXT_BYTES + schema.PHASE_ROWS * codec.PHASE.size
    data = bytearray(start + schema.RECORDS * size)
    head = {"magic": schema.MAGIC, "version": schema.VERSION, "byte_order": schema.BYTE_ORDER, "header_size": schema.HEADER_BYTES, "boot": b""}
    head.update(text_size=schema.TEXT_BYTES, phase_size=codec.PHASE.size, phases=schema.PHASE_ROWS, record_size=size)
    head["records"] = schema.RECORDS
    codec.HEADER.write(data, 0, head)
    for number in (1, 2, 3):
        values = {"index": number, "index_again": number, "op": 18, "peer": -1, "seq": number}
        codec.RECORD.write(data, start + number * size, values)
    before = bytearray(data)
    before[start + 2 * size + size - 8 : start + 3 * size] = bytes(8)
    found = whole_ledger.parse(ledger_file.quiet(ledger_file.Reading(bytes(data), bytes(before))))
    assert ([record.number for record in found.records], found.torn) == ([1, 3], 0)
