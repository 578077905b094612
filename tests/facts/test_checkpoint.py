"""Checkpoints are inspected without being changed."""

import gzip
import io
import os
import socket
import threading
import zipfile
from pathlib import Path

import pytest
import torch

from ddp_probe.traced.facts.checkpoint_file import locations, look

NEW = tuple(int(part) for part in torch.__version__.split("+", maxsplit=1)[0].split(".")[:2]) >= (2, 0)


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of three tensors."""
    path = tmp_path / "epoch_1.pth"
    torch.save({"state_dict": torch.nn.Linear(2, 2).state_dict(), "device": "cpu", "more": torch.zeros(300)}, str(path))
    return path


def bytes_read():
    """Return how many bytes this process has read from files."""
    return int(Path("/proc/self/io").read_text(encoding="utf-8").split()[1])


def written(folder, content, name="file"):
    """Return a file with this content."""
    path = folder / name
    path.write_bytes(content)
    return path


def test_zip(saved):
    """A checkpoint of torch's is a complete zip; size, inode and age are those of the file."""
    found = look(str(saved))
    assert (found.kind, found.complete, found.exists, found.error) == ("zip", True, True, "")
    assert (found.path, found.size, found.inode) == (str(saved), saved.stat().st_size, saved.stat().st_ino)
    assert found.age is not None
    assert -1 < found.age < 60


def test_pathlib(saved):
    """A pathlib path is inspected like a string."""
    assert look(saved).kind == "zip"
    assert look(os.fsencode(str(saved))).kind == "zip"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_zip(saved, tmp_path, share):
    """A zip cut anywhere is not complete."""
    whole = saved.read_bytes()
    found = look(written(tmp_path, whole[: int(len(whole) * share)]))
    assert (found.kind, found.complete) == ("zip", False)


def test_zip_cut_at_every_byte_of_its_end(saved, tmp_path):
    """A zip that lacks only its last bytes is not complete."""
    whole = saved.read_bytes()
    assert [look(written(tmp_path, whole[:-missing])).complete for missing in range(1, 100)] == [False] * 99


def test_zip_with_a_hole(saved, tmp_path):
    """An end-of-archive record that points at something else than a table of contents is not believed."""
    whole = saved.read_bytes()
    assert look(written(tmp_path, whole[: len(whole) // 2] + whole[len(whole) // 2 + 64 :])).complete is False


def test_zip_with_a_comment(tmp_path):
    """A comment after the end-of-archive record does no harm, even one that looks like such a record."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(str(path), "w") as archive:
        archive.writestr("a", "b")
        archive.comment = b"PK\x05\x06" + b"x" * 1000
    assert look(path).complete is True


def test_zip64(saved, tmp_path):
    """If the old record says that it is too small, the newer one decides; without it the archive is incomplete."""
    whole = bytearray(saved.read_bytes())
    whole[-14:-2] = b"\xff" * 12  # entries, size and offset: torch writes the newer record in any case
    assert look(written(tmp_path, bytes(whole))).complete is True
    assert locations(written(tmp_path, bytes(whole))) == ["cpu"]
    assert look(written(tmp_path, bytes(whole[:-98] + whole[-22:]))).complete is False


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs"),
        (b"<!DOCTYPE html><html></html>", "html"),
        (b"\n\n  <html>", "html"),
        (b'{"a": 1}', "json"),
        (b"hello", "text"),
        (b"\x80\x04\x95abc", "pickle"),
        (b"\x00\x01\x02", "unknown"),
        ((20).to_bytes(8, "little") + b'{"__metadata__":{}} ' + b"x" * 20, "safetensors"),
        (b"P", "text"),
    ],
)
def test_kinds(tmp_path, content, kind):
    """The first bytes decide the kind."""
    found = look(written(tmp_path, content))
    assert (found.kind, found.complete, found.error) == (kind, None, "")


@pytest.mark.parametrize("protocol", [2, 4])
def test_legacy(tmp_path, protocol):
    """torch's format before 1.6 is distinguished from any other pickle."""
    path = tmp_path / "old.pth"
    torch.save({"w": torch.zeros(3)}, str(path), _use_new_zipfile_serialization=False, pickle_protocol=protocol)
    assert look(path).kind == "legacy"
    assert locations(path) == ["cpu"]


def test_missing(tmp_path):
    """A missing file is recorded as missing."""
    found = look(tmp_path / "missing")
    assert (found.exists, found.size, found.error) == (False, None, "")


def test_directory(tmp_path):
    """A directory is a directory."""
    assert look(tmp_path).kind == "directory"


def test_unreadable(tmp_path):
    """A path that cannot be inspected has a reason."""
    assert look(str(tmp_path / ("x" * 300))).error == os.strerror(36)
    assert look("a\0b").error == "ValueError"


def test_url_is_not_looked_at():
    """A URL is named, its credentials and query masked, and not opened."""
    found = look("https://user:planted@host/x.pth?token=planted")
    assert found.path == "https://***@host/x.pth?***"
    assert (found.exists, found.error) == (None, "A URL; not inspected.")


def test_fifo_socket_and_device_are_not_opened(tmp_path, monkeypatch):
    """Opening a FIFO would wait for its writer: it is recorded as a stream without opening it."""
    os.mkfifo(str(tmp_path / "fifo"))
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # The address of a socket has room for about a hundred characters.
        server.bind("socket")
        kinds = []
        worker = threading.Thread(
            target=lambda: kinds.extend(look(str(path)).kind for path in (tmp_path / "fifo", tmp_path / "socket", "/dev/zero")), daemon=True
        )
        worker.start()
        worker.join(60)
    assert kinds == ["stream"] * 3


def test_open_files_are_not_moved(saved):
    """A file that the job has open is looked at from where it stands, and stays there."""
    with saved.open("rb") as stream, open(str(saved), "rb", buffering=0) as raw, saved.open("r+b") as both:
        for f in (stream, raw, both):
            assert (look(f).kind, look(f).complete, look(f).path, f.tell()) == ("zip", True, str(saved), 0)
            f.seek(7)
            f.read(2)
            assert look(f).kind == "unknown"
            assert locations(f) == []
            assert f.tell() == 9


def test_a_local_file_of_fsspec_is_the_file_in_it(saved):
    """What Lightning loads from is looked at like a file of Python's own, and is not moved; a compressed one is only a stream."""
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(str(saved), "rb") as f:
        assert type(f).__name__ == "LocalFileOpener"
        assert (look(f).kind, look(f).complete, look(f).path, f.tell()) == ("zip", True, str(saved), 0)
        assert locations(f) == ["cpu"]
    packed = saved.with_suffix(".gz")
    packed.write_bytes(gzip.compress(saved.read_bytes()))
    with fsspec.filesystem("file").open(str(packed), "rb", compression="gzip") as f:
        assert look(f).kind == "stream"


def test_memory(saved):
    """A BytesIO is looked at without moving it or holding it."""
    memory = io.BytesIO(saved.read_bytes())
    assert (look(memory).kind, look(memory).complete, locations(memory)) == ("zip", True, ["cpu"])
    assert memory.tell() == 0
    memory.truncate(100)
    assert look(memory).complete is False


def test_closed_file(saved):
    """A closed file says so."""
    with saved.open("rb") as stream:
        pass
    assert look(stream).error == "ValueError"


def test_objects_of_the_job_are_not_called():
    """An object with a read method of its own, and a PathLike, is a stream: none of its code runs."""

    class Own:
        def __getattribute__(self, name):
            raise RuntimeError

    class OwnPath(os.PathLike):
        def __fspath__(self):
            raise RuntimeError

    class OwnMemory(io.BytesIO):
        def getvalue(self):
            raise RuntimeError

        tell = fileno = read = getvalue

    for f in (Own(), OwnPath(), OwnMemory(), 3, None, io.StringIO("x")):
        found = look(f)
        assert (found.kind, found.error) == ("stream", "")
        assert locations(f) == []


def test_looking_changes_nothing(saved):
    """Neither the file's times of change nor its bytes differ afterwards, and no descriptor is left open."""
    before = (saved.stat().st_mtime_ns, saved.stat().st_ctime_ns, saved.read_bytes())
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        look(saved)
        locations(saved)
    assert (saved.stat().st_mtime_ns, saved.stat().st_ctime_ns, saved.read_bytes()) == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("protocol", [2, 4])
def test_locations(saved, tmp_path, protocol):
    """The devices are those that the storages were saved from, whatever else the pickle says."""
    path = tmp_path / "x.pth"
    torch.save({"name": "cuda:7", "w": [torch.zeros(number + 1) for number in range(400)]}, str(path), pickle_protocol=protocol)
    assert locations(path) == ["cpu"]


def test_locations_known_before(tmp_path):
    """A device that the pickle has named elsewhere before, and only refers to later, is found."""
    path = tmp_path / "x.pth"
    torch.save({"device": "cpu", "w": torch.zeros(3)}, str(path))
    assert locations(path) == ["cpu"]


def test_locations_of_other_devices(saved, tmp_path):
    """A file saved from gcu:3 and cuda:0 says so, on a machine that has neither."""
    path = tmp_path / "cards.pth"
    with zipfile.ZipFile(str(saved)) as before, zipfile.ZipFile(str(path), "w") as after:
        pickle = before.read(next(name for name in before.namelist() if name.endswith("/data.pkl")))
        storage = b"(X\x07\x00\x00\x00storageq\x01ctorch\nFloatStorage\nq\x02X\x01\x00\x00\x00%dq\x03X%c\x00\x00\x00%sq\x04K\x03tq\x05Q"
        pickle = pickle[:-1] + b"".join(storage % (number, len(name), name) for number, name in enumerate((b"gcu:3", b"cuda:0"))) + b"."
        after.writestr("archive/data.pkl", pickle)
    assert locations(path) == ["cpu", "cuda:0", "gcu:3"]


@pytest.mark.skipif(not NEW, reason="torch 1.12 saves no meta tensors")
def test_locations_meta_state(tmp_path):
    """A file without storages names no device."""
    path = tmp_path / "none.pth"
    torch.save({"a": 1}, str(path))
    assert locations(path) == []


def test_nothing_is_unpickled(tmp_path):
    """A pickle that would run code is recorded as a pickle and does not run."""
    mark = tmp_path / "ran"
    path = tmp_path / "evil.pth"
    with zipfile.ZipFile(str(path), "w") as archive:
        archive.writestr("archive/data.pkl", b"cos\nsystem\n(S'touch %s'\ntR." % os.fsencode(str(mark)))
    assert look(path).kind == "zip"
    assert locations(path) == []
    assert locations(written(tmp_path, b"cos\nsystem\n(S'touch %s'\ntR." % os.fsencode(str(mark)))) == []
    assert not mark.exists()


def test_large_files_take_no_longer(tmp_path):
    """Of a file of 4 GiB, most of it a hole, less than a megabyte is read."""
    path = tmp_path / "large"
    with path.open("wb") as f:
        f.write(b"PK\x03\x04")
        f.truncate(4 << 30)
    before = bytes_read()
    found = look(path)
    locations(path)
    assert (found.kind, found.complete, found.size) == ("zip", False, 4 << 30)
    assert 0 < bytes_read() - before < 1 << 20


def test_table_that_lies(saved, tmp_path):
    """Bytes of the table of contents changed at will lead to no exception."""
    whole = bytearray(saved.read_bytes())
    for place in range(len(whole) - 700, len(whole)):
        for value in (0, 255):
            changed = bytearray(whole)
            changed[place] = value
            memory = io.BytesIO(bytes(changed))
            assert look(memory).error == ""
            assert set(locations(memory)) <= {"cpu"}


def test_relative_path(saved, monkeypatch):
    """A relative path is recorded as given."""
    monkeypatch.chdir(saved.parent)
    assert look(Path(saved.name)).path == saved.name
    assert look(saved.name).exists
