"""A number that a file claims is not walked up to and no room is made for it, before it is compared with what the file holds."""

import json
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddp_probe.reading import ledger_file, ledger_text, rank_ledger, whole_ledger
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.errors import ProbeError

_CALLS = ["ledger 0-1 all_reduce 4 float32 at t.py:3 x4", "ledger 0 all_reduce 4 float32 at t.py:3 open", "ledger 1 barrier at t.py:9 open"]
_SEQ = codec.RECORD.offset("seq")
_REPORT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from ddp_probe.cli import main
sys.exit(main(["report", sys.argv[1], "--json"]))
"""


def _report(folder: Path, clean_env: Callable[..., Dict[str, str]]) -> Any:
    command = [sys.executable, "-c", _REPORT, str(folder)]
    done = subprocess.run(command, env=clean_env(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr[-2000:])
    return json.loads(done.stdout)


def _start(rank: int) -> str:
    return json.dumps({"event": "process.start", "phase": "point", "rank": rank, "world_size": 2, "host": "node1", "pid": rank + 1}) + "\n"


def test_records_with_far_numbers(tmp_path: Path, clean_env: Callable[..., Dict[str, str]]) -> None:
    """Two ledgers whose records are two hundred billion apart are read in seconds; what is between them is in no file."""
    written = ledger_text.written(_CALLS)
    far = bytearray(written[1])
    size = codec.RECORD.size
    places = codec.HEADER.read_field(far, 0, "records")
    for place in range(8):
        at = len(far) - (places - place) * size + _SEQ
        (seq,) = struct.unpack_from("=Q", far, at)
        struct.pack_into("=Q", far, at, seq + 214_748_364_801 if seq else 0)
    for rank, data in ((0, written[0]), (1, bytes(far))):
        (tmp_path / ("rank%05d.node1.%d.jsonl" % (rank, rank + 1))).write_text(_start(rank), encoding="utf-8")
        (tmp_path / ("rank%05d.node1.%d.ledger" % (rank, rank + 1))).write_bytes(data)
    assert _report(tmp_path, clean_env)["inventory"]["seen"] == 2


@pytest.mark.parametrize(
    "claim", ['"records":30000000', '"records":-5', '"text_size":99999999999', '"phases":50000000', '"records":"64"', '"lines":1e300']
)
def test_a_text_of_a_ledger_that_claims_much(tmp_path: Path, clean_env: Callable[..., Dict[str, str]], claim: str) -> None:
    """A hundred bytes that claim room for millions of records are not valid, are named as such, and take no memory."""
    text = '{"ledger":%d,"lines":0,"rank":0,"world_size":2,"pid":1,%s}\n' % (schema.VERSION, claim)
    with pytest.raises(ValueError, match="ledger"):
        ledger_file.of_lines(text.encode())
    (tmp_path / "rank00000.node1.1.jsonl").write_text(_start(0), encoding="utf-8")
    (tmp_path / "rank00000.node1.1.ledger.txt").write_text(text, encoding="utf-8")
    assert _report(tmp_path, clean_env)["inventory"]["seen"] == 1


def test_a_group_of_all_ranks_there_could_be() -> None:
    """A list of ranks is bounded as a whole, and not only in each of its parts."""
    assert len(schema.ranks_of("0-1048575")) == 1 << 20
    for text in ("0-9999999", ",".join(["0-1000000"] * 100)):
        with pytest.raises(ValueError, match="more ranks than a job can have"):
            schema.ranks_of(text)


_VALID = ledger_text.written(_CALLS)[0]
_FIELDS = [codec.HEADER.offset(field.name) for field in schema.HEADER]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(_FIELDS), st.integers(0, 4000)), st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([2**31, 2**32, 2**63]))
        ),
        max_size=4,
    ),
    st.one_of(st.none(), st.integers(0, len(_VALID))),
)
def test_any_ledger_is_read_or_refused(stores: Any, end: Any) -> None:
    """Whatever numbers stand in a ledger, and wherever it ends, it is read with what it holds, or its problem is named; as text it is the same."""
    data = bytearray(_VALID)
    for at, value in stores:
        struct.pack_into("=Q", data, min(at, len(data) - 8), value)
    mutant = bytes(data[:end])
    found = rank_ledger.read("x.ledger", mutant)
    assert len(found.groups) < 100
    assert len(whole_ledger.parse(mutant, "x.ledger").records) <= len(mutant) // 8
    try:
        text = ledger_file.as_lines(mutant)
    except (ValueError, struct.error):
        return
    try:
        assert len(ledger_file.of_lines(text.encode("utf-8", "surrogateescape"))) <= 2 * len(_VALID)
    except (ValueError, ProbeError):
        return
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20
