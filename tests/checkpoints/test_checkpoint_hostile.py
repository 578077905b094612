"""Files that are made to harm get a verdict: nothing is executed, nothing crashes, time and memory are bounded."""

import io
import json
import os
import pickle
import random
import resource
import struct
import threading
import zipfile
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from changed_files import for_changed_files
from corpus_table import CORPUS, truth

from ddp_probe.checkpoints import pickle_machine
from ddp_probe.checkpoints.judge_path import judge
from ddp_probe.checkpoints.judged import BROKEN, UNKNOWN, WHOLE, Judged

STATE = CORPUS / "new" / "state-zip-2.pt"
PID = b"ctorch\nFloatStorage\n"


def archive(pickled: bytes, compression: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    """Return an archive as torch writes it, around a pickle of ours."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, data in {"data.pkl": pickled, "version": b"3\n", "byteorder": b"little", **more}.items():
            made.writestr("archive/" + name.replace("__", "/"), data)
    return out.getvalue()


def one(tmp_path: Path, data: bytes, *, deep: bool = False, name: str = "model.pth") -> Judged:
    """Judge these bytes."""
    path = tmp_path / name
    path.write_bytes(data)
    return judge(str(path), deep=deep)


def calls(code: str) -> bytes:
    """Return a pickle that executes code if it is unpickled."""
    return b"\x80\x02cbuiltins\nexec\n" + b"X" + struct.pack("<I", len(code)) + code.encode() + b"\x85R."


@pytest.mark.parametrize("form", ["archive", "legacy", "pickle", "metadata", "inst", "build", "ext", "persistent", "state"])
def test_nothing_in_a_pickle_is_executed(tmp_path: Path, command: Callable[..., Any], form: str) -> None:
    """Code that unpickling would run does not run, by whichever opcode it is called, and the class is named."""
    mark = tmp_path / "executed"
    code = "open(%r, 'w')" % str(mark)
    raw = calls(code)
    legacy = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."
    text = code.encode()
    forms: Dict[str, bytes] = {
        "archive": archive(raw),
        "legacy": legacy + raw + b"\x80\x02].",
        "pickle": raw,
        "metadata": raw,
        "inst": archive(b"(V" + text + b"\nibuiltins\nexec\n."),
        "build": archive(b"\x80\x02cbuiltins\nobject\n)\x81}X\x01\x00\x00\x00aX\x01\x00\x00\x00bsb0" + raw[2:]),
        "ext": archive(b"\x80\x02\x82\x01."),
        "persistent": archive(b"\x80\x02" + raw[2:-1] + b"Q."),
        "state": archive(b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c" + bytes([len(text)]) + text + b"\x85R."),
    }
    if form == "metadata":
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / ".metadata").write_bytes(raw)
        found = judge(str(tmp_path / "folder"), deep=True)
    else:
        found = one(tmp_path, forms[form], deep=True)
    assert not mark.exists()
    assert found.verdict in (WHOLE, BROKEN, UNKNOWN)
    if form in ("archive", "legacy", "inst", "state"):
        assert found.classes == ["builtins.exec"]
        assert found.weights_only is not None
        assert not found.weights_only.accepted
        assert "builtins.exec" in command(tmp_path / "model.pth").out


def _laughs() -> bytes:
    """A list of ten references to a list of ten references, forty times."""
    made = b"\x80\x02]q\x00"
    for level in range(40):
        made += b"](" + b"h" + bytes([level]) + (b"h" + bytes([level])) * 9 + b"eq" + bytes([level + 1])
    return made + b"."


def bombs() -> Iterator[Tuple[str, Callable[[], bytes]]]:
    """Yield files that would take gigabytes, or an endless time, if their pickle was believed."""
    yield "billion laughs", lambda: archive(_laughs())
    yield "a pickle that inflates to 200 MB", lambda: archive(b"\x80\x02" + b"]" * (200 << 20), zipfile.ZIP_DEFLATED)
    yield "tuples in tuples", lambda: archive(b"\x80\x02)" + b"\x85" * 150_000 + b".")
    yield "lists in lists", lambda: archive(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    yield "dicts in dicts", lambda: archive(b"\x80\x02" + b"}X\x01\x00\x00\x00a" * 50_000 + b"N" + b"s" * 50_000 + b".")
    yield "open marks", lambda: archive(b"\x80\x02" + b"(" * 200_000 + b".")
    yield "calls of calls", lambda: archive(b"\x80\x02cos\nsystem\n" + b")R" * 100_000 + b".")
    yield "a long number in digits", lambda: archive(b"L" + b"9" * 500_000 + b"L\n.")
    yield "a long number in bytes", lambda: archive(b"\x80\x02\x8b" + struct.pack("<i", 1 << 20) + b"\x7f" * (1 << 20) + b".")
    yield "a text that is said to have 4 GB", lambda: archive(b"\x80\x02X\xff\xff\xff\xffabc.")
    yield "bytes that are said to have 2**63", lambda: archive(b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f" + b"abc.")
    yield "a frame of 2**63 bytes", lambda: archive(b"\x80\x04\x95" + b"\xff" * 8 + b"N.")
    yield "a memo number of 2**31", lambda: archive(b"\x80\x02Nr\xff\xff\xff\xff.")
    yield "a memo number in digits", lambda: archive(b"Np" + b"9" * 4000 + b"\n.")
    yield "a tensor of many sizes", lambda: archive(_tensor(b"(" + b"M\xff\xff" * 5000 + b"t"))
    yield "a tensor of huge sizes", lambda: archive(_tensor(b"(" + b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f" * 60 + b"t"))
    yield "a negative size", lambda: archive(_tensor(b"(J\xff\xff\xff\xfft"))
    yield "a storage of 2**62 elements", lambda: archive(_tensor(b"(K\x01t", b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00@"))
    yield "itself in itself", lambda: archive(b"\x80\x02]q\x00h\x00a.")


def _tensor(shape: bytes, elements: bytes = b"K\x01") -> bytes:
    pid = b"(X\x07\x00\x00\x00storage" + PID + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + elements + b"tQ"
    return (
        b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n(" + pid + b"K\x00" + shape + b"(K\x01t\x89ccollections\nOrderedDict\n)RtRs."
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "made"), list(bombs()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_bomb_has_a_verdict_in_bounded_memory(
    tmp_path: Path, run_python: Callable[..., Any], command: Callable[..., Any], name: str, made: Callable[[], bytes]
) -> None:
    """What would take gigabytes or an endless time has a verdict, and the page and the JSON can be printed."""
    path = tmp_path / "bomb.pt"
    path.write_bytes(made())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = command("--json", "--deep", path)
    assert done.code in (0, 1, 3)
    assert command(path, "--names").code == done.code
    # In kilobytes; the largest of these files holds 150,000 objects.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000


_MANY = 1_000_000
_PEAK = """
import resource, sys
from ddp_probe.checkpoints.judge_path import judge
found = judge(sys.argv[1])
print(found.verdict, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, found.because)
"""


@pytest.mark.parametrize(
    ("pickled", "verdict", "most"),
    [
        (b")" + b"\x85" * _MANY, UNKNOWN, 30),
        (b")" + b"K\x01\x86" * _MANY, UNKNOWN, 30),
        (b"]" * _MANY + b"a" * (_MANY - 1), UNKNOWN, 120),
        (b"(" + b")" * _MANY + b"t", WHOLE, 60),
        (b"(" + b"K\x01" * _MANY + b"l", WHOLE, 60),
    ],
    ids=["tuples", "pairs", "lists", "wide", "numbers"],
)
def test_a_million_values_cost_little(tmp_path: Path, run_python: Callable[..., Any], pickled: bytes, verdict: str, most: int) -> None:
    """Tuples and lists in each other are given up at a depth that no pickler writes; of a million plain values none is looked at one by one."""
    peaks = []
    for name, data in (("small.pth", b"\x80\x02)."), ("large.pth", b"\x80\x02" + pickled + b".")):
        (tmp_path / name).write_bytes(archive(data))
        done = run_python(["-c", _PEAK, tmp_path / name])
        said, peak, because = done.stdout.rstrip("\n").split(" ", 2)
        peaks.append(int(peak))
    assert said == verdict, because
    assert ("nested more deeply" in because) == (verdict == UNKNOWN)
    assert peaks[1] - peaks[0] < most, peaks


def test_a_deep_object_that_a_pickler_has_written_is_whole(tmp_path: Path) -> None:
    """Lists in each other as deep as Python's pickler can write them are followed to the tensor inside."""
    nested: Any = []
    for _ in range(100):
        nested = [(nested, {"a": nested})]
    assert one(tmp_path, archive(pickle.dumps(nested, 2))).verdict == WHOLE


def test_more_than_the_limits_is_unknown_and_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle with more opcodes, values, texts or marks than are followed cannot be judged, and the reason is given."""
    for limit, pickled in (("OPCODES", b"N0" * 900), ("VALUES", b"]" * 900), ("TEXT", b"X\x02\x00\x00\x00ab" * 900), ("_MARKS", b"(" * 900)):
        with monkeypatch.context() as patched:
            patched.setattr(pickle_machine, limit, 500)
            found = one(tmp_path, archive(b"\x80\x02" + pickled + b"N."))
        assert (found.verdict, limit) == (UNKNOWN, limit)
        assert "larger than what is followed" in found.because


def _directory(data: bytes) -> Tuple[int, int]:
    end = data.rfind(b"PK\x05\x06")
    return end, struct.unpack_from("<I", data, end + 16)[0]


def lies() -> Iterator[Tuple[str, bytes]]:
    """Yield archives whose directory says what is not so."""
    # Not one of torch's: those have a second end record, of zip64, and what the first one says is ignored.
    data = archive(_tensor(b"(K\x01t"), data__0=bytes(4), data__3=b"more")
    end, start = _directory(data)
    for name, at, value in (
        ("a directory of 4 GB", end + 12, 0xFFFFFFFE),
        ("a directory far away", end + 16, 0xFFFFFFFE),
        ("a directory at the start", end + 16, 0),
        ("a record of 4 GB", start + 24, 0xFFFFFFF0),
        ("a record packed in 4 GB", start + 20, 0xFFFFFFF0),
        ("a record far away", start + 42, 0xFFFFFFF0),
        ("a record in another", data.index(b"PK\x01\x02", start + 4) + 42, 0),
        ("a longer name", start + 28, 0xFFFF),
    ):
        yield name, data[:at] + struct.pack("<I", value) + data[at + 4 :]
    yield "more records than there are", data[: end + 8] + b"\xff\xff\xff\xff" + data[end + 12 :]
    yield "its own header has another name", data.replace(b"archive/data/3", b"archive/data/x", 1)
    yield "two records of one name", data.replace(b"archive/data/3", b"archive/data/4")
    yield "a name outside", archive(b"\x80\x02N.").replace(b"archive/version", b"archive/../../v")
    yield "an absolute name", archive(b"\x80\x02N.").replace(b"archive/version", b"/rchive/version")
    yield "a name with zeros", archive(b"\x80\x02N.").replace(b"archive/version", b"archive/ver\0\0on")
    yield "an end within the archive", data[:100] + b"PK\x05\x06" + bytes(18) + data[100:200]
    own = STATE.read_bytes()
    end64 = own.rfind(b"PK\x06\x06")
    for name, at, byte in (
        ("a count here", 24, 9),
        ("a count", 32, 240),
        ("a size", 43, 1),
        ("an offset", 48, 240),
        ("its own size", 4, 0),
        ("a disk", 16, 7),
    ):
        yield "%s in zip64" % name, own[: end64 + at] + bytes([byte]) + own[end64 + at + 1 :]
    yield "an end of zip64 that points to itself", data[:end] + b"PK\x06\x07" + bytes(4) + struct.pack("<QI", end, 1) + data[end:]


@pytest.mark.parametrize(("name", "data"), list(lies()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_lying_directory_is_broken(tmp_path: Path, command: Callable[..., Any], name: str, data: bytes) -> None:
    """A directory whose sizes, offsets or names are not those of the records is broken or said to be unusual."""
    found = one(tmp_path, data, deep=True)
    assert found.verdict == BROKEN or found.remarks
    assert command(tmp_path / "model.pth").code in (0, 1)


def test_a_million_records_are_not_kept(tmp_path: Path) -> None:
    """An archive that is said to have a million records is unknown, without an object for each."""
    name = b"archive/data/%07d"
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0)
    table = b"".join(entry + name % number for number in range(1_000_000))
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 0, 0, 0, 0, 1_000_000, 1_000_000, len(table), 4)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 4 + len(table), 1)
    found = one(tmp_path, b"PK\x03\x04" + table + end64 + locator + b"PK\x05\x06" + bytes(4) + b"\xff" * 12 + bytes(2))
    assert (found.verdict, found.because) == (UNKNOWN, "The archive has 1000000 records; at most 250000 are read.")


def test_only_regular_files_are_opened(tmp_path: Path, command: Callable[..., Any]) -> None:
    """A pipe, a device and a loop of links have a verdict at once; a link to a file is followed."""
    os.mkfifo(str(tmp_path / "pipe.pt"))
    os.symlink("loop.pt", str(tmp_path / "loop.pt"))
    os.symlink(str(STATE), str(tmp_path / "link.pt"))
    os.symlink(str(tmp_path), str(tmp_path / "around"))
    os.symlink("nowhere", str(tmp_path / "gone.pt"))
    found = {Path(each["path"]).name: each for each in command("--json", "/dev/zero", *sorted(tmp_path.glob("*.pt"))).objects}
    assert {name: each["verdict"] for name, each in found.items()} == {
        **dict.fromkeys(("zero", "pipe.pt", "loop.pt", "gone.pt"), "unknown"),
        "link.pt": "whole",
    }
    assert found["pipe.pt"]["because"] == found["zero"]["because"] == "Not a regular file."
    assert len(command("--json", tmp_path).objects) == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_unknown(tmp_path: Path) -> None:
    """A file without the right to read it is unknown, with the reason."""
    (tmp_path / "model.pth").write_bytes(b"x")
    (tmp_path / "model.pth").chmod(0)
    assert judge(str(tmp_path / "model.pth")).because == "Permission denied."


def test_a_file_that_shrinks_while_it_is_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file becomes shorter between two reads, no verdict is given on what is left."""
    path = tmp_path / "model.pth"
    path.write_bytes(STATE.read_bytes())
    read, count = os.pread, [0]

    def pread(fd: int, length: int, offset: int) -> bytes:
        count[0] += 1
        if count[0] == 5:
            os.truncate(str(path), 10)
        return read(fd, length, offset)

    monkeypatch.setattr("ddp_probe.checkpoints.checkpoint_file.os.pread", pread)
    found = judge(str(path))
    assert (found.verdict, found.because) == (UNKNOWN, "The file became shorter while it was read.")


def test_a_hundred_gigabytes_are_judged_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sparse archive of 100 GB is whole after less than a megabyte was read; torch's older format and safetensors as well."""
    size = 25 << 30
    pickled = _tensor(b"(\x8a\x05" + struct.pack("<Q", size)[:5] + b"t", b"\x8a\x05" + struct.pack("<Q", size)[:5])
    names = [("data.pkl", pickled), ("version", b"3\n"), ("data/0", None)]
    path = tmp_path / "huge.pt"
    with path.open("wb") as stream:
        table = b""
        for name, data in names:
            raw, at = b"archive/" + name.encode(), stream.tell()
            length = len(data) if data is not None else size * 4
            extra = b"" if data is not None else struct.pack("<HHQQ", 1, 16, length, length)
            sizes = (len(data), len(data)) if data is not None else (0xFFFFFFFF, 0xFFFFFFFF)
            crc = zlib.crc32(data) if data is not None else 0
            stream.write(struct.pack("<4s5H3I2H", b"PK\x03\x04", 45, 0, 0, 0, 0, crc, *sizes, len(raw), len(extra)) + raw + extra)
            stream.write(data) if data is not None else stream.seek(length, 1)
            table += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 45, 45, 0, 0, 0, 0, crc, *sizes, len(raw), len(extra), 0, 0, 0, 0, at) + raw + extra
        start = stream.tell()
        stream.write(table + struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 3, 3, len(table), start))
        stream.write(struct.pack("<4sIQI", b"PK\x06\x07", 0, start + len(table), 1))
        stream.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 3, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    header = json.dumps({"a": {"dtype": "F32", "shape": [size], "data_offsets": [0, size * 4]}}).encode()
    other = tmp_path / "huge.safetensors"
    with other.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        stream.truncate(8 + len(header) + size * 4)
    counted = [0]
    read = os.pread

    def pread(fd: int, length: int, offset: int) -> bytes:
        counted[0] += length
        return read(fd, length, offset)

    monkeypatch.setattr("ddp_probe.checkpoints.checkpoint_file.os.pread", pread)
    for file in (path, other):
        found = judge(str(file))
        assert (found.verdict, found.elements, found.bytes) == (WHOLE, size, size * 4), found
    assert counted[0] < 1_000_000


def test_every_cut_of_every_kind_is_broken(tmp_path: Path, whole: bool) -> None:
    """A file of torch that was cut at any byte is never judged whole; a share of the bytes is drawn."""
    draw = random.Random(9)
    files = [file for file in sorted(truth()) if file.endswith((".pt", ".npy"))]
    wrong = []
    for file in files if whole else draw.sample(files, 20):
        data = (CORPUS / file).read_bytes()
        for at in range(len(data)) if whole else sorted(draw.sample(range(len(data)), 12)):
            found = one(tmp_path, data[:at])
            if found.verdict == WHOLE:
                wrong.append((file, at, found.kind))
    assert wrong == []


def test_changed_files_never_raise(tmp_path: Path, whole: bool) -> None:
    """Files with bytes changed, put in or cut off always have a verdict."""
    files = [(CORPUS / file).read_bytes() for file in sorted(truth())]
    files += [data for _, made in bombs() for data in [made()] if len(data) < 20_000]
    verdicts: List[str] = []
    for_changed_files(lambda data: verdicts.append(one(tmp_path, data, deep=True).verdict), files, 20_000 if whole else 150)
    assert set(verdicts) <= {WHOLE, BROKEN, UNKNOWN}
    assert verdicts.count(BROKEN) > len(verdicts) / 4


def test_a_judgement_takes_a_thread_without_harm(tmp_path: Path) -> None:
    """Deep nesting needs no deep stack: it is judged in a thread with the smallest stack."""
    path = tmp_path / "deep.pt"
    path.write_bytes(archive(b"\x80\x02)" + b"\x85" * 100_000 + b"."))
    found: List[Judged] = []
    before = threading.stack_size(64 << 10)
    try:
        thread = threading.Thread(target=lambda: found.append(judge(str(path))))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found[0].verdict == WHOLE
    assert pickle.loads(b"\x80\x02).") == ()
