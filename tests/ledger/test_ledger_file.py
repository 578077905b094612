"""The ledger's file: its layout, what the parser makes of any bytes, and what is made on disk."""

import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest

from ddp_probe.reading import ledger_file, whole_ledger
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import HEADER, PHASE, PLACES, RowCodec
from ddp_probe.shared.ledger_codec import RECORD as _RECORD
from ddp_probe.traced.record.ledger_memory import Author, LedgerFile, create


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """A file with three records, a group, a site and a phase."""
    file = create(str(tmp_path / "rank00003.host.7"), Author(3, 8, 55, "95b52836-142f-480f-965e-3f652ff56c63", "host"))
    site = file.text(schema.SITE, "/job/train.py\n12\nmain")
    group = file.text(schema.GROUP, '{"id":"ab","size":8,"ranks":"0-7","nth":1,"backends":{"all":"gloo"},"name":"0"}')
    dtype = file.text(schema.DTYPE, "float32")
    for number, left in ((1, 900 << 2 | schema.RETURNED), (2, 0), (3, 950 << 2)):
        values = (number, 800 + number, 0, left, number, 16, 0, group, 0, site, 0, -1, 1, 1, dtype, 0, schema.ASYNC if number == 3 else 0, number)
        _RECORD.pack_into(file.map, PLACES.records + number * _RECORD.size, *values)
    PHASE.pack_into(file.map, PLACES.phases, 5, 700, 0, 5, site, 0, 5)
    yield file
    file.close()


def _data(file: LedgerFile) -> bytes:
    return Path(_path(file)).read_bytes()


def _path(file: LedgerFile) -> str:
    """Return the path of the file, which has everything in it that the memory has: these tests store records without a time."""
    file.words[HEADER.word("moved_ns")] += 1
    file.flush()
    return file.path


@pytest.mark.parametrize("fields", [area.fields for area in schema.AREAS])
def test_native_layout_is_the_standard_one(fields: Any) -> None:
    """No area has padding, so a reader of another machine finds each field where the writer has put it."""
    native = RowCodec(fields)
    assert {RowCodec(fields, order).size for order in "@<>="} == {native.size}
    assert native.size % 8 == 0
    for field in fields:
        assert native.offset(field.name) % min(8, native.single(field.name).size) == 0
    assert HEADER.size <= schema.HEADER_BYTES


@pytest.mark.parametrize("codes", [schema.OPERATIONS, schema.PHASES, schema.STATES, schema.FLAGS, schema.TEXTS])
def test_a_code_stands_for_one_thing(codes: Any) -> None:
    """No code and no name is given twice."""
    assert len({one.code for one in codes}) == len({one.name for one in codes}) == len(codes)


def test_everything_written_is_read(written: LedgerFile) -> None:
    """Header, group, site, phase and records come back as they were written."""
    found = whole_ledger.read(_path(written))
    assert (found.problem, found.torn) == ("", 0)
    assert found.header is not None
    assert (found.header.rank, found.header.world_size, found.header.pid, found.header.host) == (3, 8, os.getpid(), "host")
    assert found.header.boot == "95b52836-142f-480f-965e-3f652ff56c63"
    assert [(one.number, one.state, one.is_open, one.is_issued) for one in found.records] == [
        (1, "returned", False, False),
        (2, "open", True, False),
        (3, "open", True, True),
    ]
    first = found.records[0]
    assert first.group == whole_ledger.Group("ab", 8, "0-7", 1, {"all": "gloo"}, "0", "")
    assert (first.op, first.dtype, first.elements, first.site) == ("all_reduce", "float32", 16, whole_ledger.LedgerSite("/job/train.py", 12, "main"))
    assert [(one.name, one.times, one.is_open) for one in found.phases] == [("dataloader", 5, True)]
    assert [one.number for one in whole_ledger.read(_path(written), last=1).records] == [3]


@pytest.mark.parametrize("count", [3, 31, 32, 63, 64, 223, 224, 225, 255, 256, 257, 991, 992, 2047, 2048, 2049, 5000])
def test_what_is_left_out_was_never_written(written: LedgerFile, count: int) -> None:
    """However full the ring is, a file that is read without the end of its ring holds what the whole file does."""
    for number in range(1, count + 1):
        values = (number, 800 + number, 0, 900 << 2 | 1, number, 16, 0, 2, 0, 1, 0, -1, 1, 1, 3, 0, 0, number)
        _RECORD.pack_into(written.map, PLACES.records + number % schema.RECORDS * _RECORD.size, *values)
    path = _path(written)
    found, data = whole_ledger.read(path), Path(path).read_bytes()
    assert found == whole_ledger.parse(data, path)
    assert found.records[-1].number == count
    assert (len(ledger_file.read(path).data) < len(data)) == (count < 992)


def test_a_reading_knows_what_has_changed_since_the_one_before(written: LedgerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record and a text that come between the two readings of a file are not in the first, and the record waits for the next reading."""
    pread, sizes = os.pread, []

    def and_then(file: int, size: int, at: int) -> bytes:
        before = pread(file, size, at)
        if at or size == schema.HEADER_BYTES or sizes:
            return before
        sizes.append(size)
        written.text(schema.SITE, "/job/train.py\n13\nmain")
        _RECORD.pack_into(written.map, PLACES.records + 4 * _RECORD.size, 4, 804, 0, 0, 4, 16, 0, 2, 0, 1, 0, -1, 1, 1, 3, 0, 0, 4)
        _path(written)
        return before

    path = _path(written)
    monkeypatch.setattr(os, "pread", and_then)
    found = whole_ledger.read(path)
    assert ([one.number for one in found.records], found.torn, found.problem) == ([1, 2, 3], 0, "")
    assert [one.number for one in whole_ledger.read(_path(written)).records] == [1, 2, 3, 4]


def test_any_bytes_are_read_without_an_error(written: LedgerFile) -> None:
    """A file cut anywhere, or with any bytes changed, gives a ledger and at most a sentence about what is missing."""
    data, draw = _data(written), random.Random(4)
    for size in [*range(400), *(draw.randrange(len(data)) for _ in range(100))]:
        found = whole_ledger.parse(data[:size])
        assert found.problem
        assert len(found.records) <= 3
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 40)):
            changed[draw.randrange(draw.choice((schema.HEADER_BYTES, 2000, len(data))))] = draw.randrange(256)
        whole_ledger.parse(bytes(changed), before=data)


def test_a_cut_file_keeps_what_it_has(written: LedgerFile) -> None:
    """Of a file that ends inside its records, those before the end are read."""
    found = whole_ledger.parse(_data(written)[: PLACES.records + 2 * _RECORD.size + 3])
    assert [one.number for one in found.records] == [1]
    assert "are missing" in found.problem


def test_another_version_is_said(written: LedgerFile) -> None:
    """A ledger of a version to come is named with both versions, and nothing of it is guessed."""
    data = bytearray(_data(written))
    data[8] = 9
    found = whole_ledger.parse(bytes(data))
    assert found.problem == "The ledger is of version 9; this ddp_probe reads versions up to 3."
    assert not found.records


@pytest.mark.parametrize(
    ("data", "said"), [(b"", "The file is empty."), (b"\0" * 5000, "The file is empty."), (b"x" * 5000, "This is not a ledger of ddp_probe.")]
)
def test_what_is_not_a_ledger_is_said(data: bytes, said: str) -> None:
    """An empty file, and one of another kind, are told apart."""
    assert whole_ledger.parse(data).problem == said


def test_a_half_written_record_is_not_believed(written: LedgerFile) -> None:
    """A record whose first and last number differ, or that lies in another's place, is counted and not shown."""
    data = bytearray(_data(written))
    data[PLACES.records + 2 * _RECORD.size] = 77
    data[PLACES.records + 9 * _RECORD.size : PLACES.records + 10 * _RECORD.size] = data[
        PLACES.records + _RECORD.size : PLACES.records + 2 * _RECORD.size
    ]
    found = whole_ledger.parse(bytes(data))
    assert [one.number for one in found.records] == [1, 3]
    assert found.torn == 2


def test_a_record_that_came_between_two_readings_waits_for_the_next(written: LedgerFile) -> None:
    """While a file changes, a record is shown if its end was there in the reading before."""
    data = _data(written)
    before = bytearray(data)
    before[PLACES.records + 3 * _RECORD.size : PLACES.records + 4 * _RECORD.size] = b"\0" * _RECORD.size
    found = whole_ledger.parse(data, before=bytes(before))
    assert [one.number for one in found.records] == [1, 2]
    assert found.torn == 0


def test_the_other_byte_order_is_read(written: LedgerFile) -> None:
    """A header written on a machine of the other byte order gives the same numbers."""
    order = ">" if schema.BYTE_ORDER.to_bytes(4, "little") == _data(written)[12:16] else "<"
    values = HEADER.unpack_from(_data(written))
    found = whole_ledger.parse(RowCodec(schema.HEADER, order).packed(HEADER.named(values)) + b"\0" * 500_000)
    assert found.header is not None
    assert (found.header.rank, found.header.pid) == (3, os.getpid())


def test_a_full_text_area_is_counted(written: LedgerFile) -> None:
    """Once the texts have used up their room, further ones get the number 0, and the header says how many."""
    numbers = [written.text(schema.SITE, "/job/%s.py\n%d\nf" % ("x" * 900, number)) for number in range(100)]
    assert numbers[-1] == 0
    assert 0 < numbers[0] < max(numbers)
    found = whole_ledger.read(_path(written))
    assert found.header is not None
    assert found.header.text_lost == numbers.count(0)


def test_file_is_ours_alone(tmp_path: Path) -> None:
    """The file is readable by its user alone, is allocated, and takes another name if its own is taken or is a link."""
    (tmp_path / "a.ledger").symlink_to(tmp_path / "elsewhere")
    one, two = (create(str(tmp_path / "a"), Author(0, 1, 0, "", "host")) for _ in range(2))
    assert [Path(file.path).name for file in (one, two)] == ["a.1.ledger", "a.2.ledger"]
    found = os.stat(one.path)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_blocks * 512 >= found.st_size
    for file in (one, two):
        file.close()
    assert not (tmp_path / "elsewhere").exists()
    closed = whole_ledger.read(one.path).header
    assert closed is not None
    assert closed.closed_ns >= closed.mono_ns


def test_closing_leaves_a_reused_descriptor_alone(tmp_path: Path) -> None:
    """If the job has closed our descriptor and its own file has got the number, closing the ledger does not close that file."""
    file = create(str(tmp_path / "a"), Author(0, 1, 0, "", "host"))
    (fd,) = file._fds
    mine = os.open(str(tmp_path / "mine"), os.O_RDWR | os.O_CREAT)
    os.dup2(mine, fd)
    file.close()
    assert os.write(fd, b"still open") == 10
    os.close(fd)
    os.close(mine)
