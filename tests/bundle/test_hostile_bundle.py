"""A bundle is somebody else's file: it writes nowhere else, fills nothing, and is refused with a sentence."""

import gzip
import io
import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

from ddp_probe import cli
from ddp_probe.reading import bundled

_GOOD = {"bundle": 1, "run": "r", "paths": ["run/a"]}
_LOG = b'{"event":"process.start","rank":0,"world_size":1}\n'


def _member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> "tuple[tarfile.TarInfo, bytes]":
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = len(data), kind, link
    return member, data


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Take members and a manifest; return an archive that would be a good bundle without the members."""

    def made(*members: Any, manifest: Optional[Dict[str, Any]] = None) -> Path:
        path = tmp_path / "b.tar.gz"
        described = json.dumps(_GOOD if manifest is None else manifest).encode()
        with tarfile.open(path, "w:gz") as tar:
            for member, data in (_member("b/bundle.json", described), _member("b/run/a/rank00000.h.1.jsonl", _LOG), *members):
                tar.addfile(member, io.BytesIO(data))
        return path

    return made


def _report(path: Path, capsys: pytest.CaptureFixture[str]) -> "tuple[int, str]":
    code = cli.main(["report", str(path)])
    return code, capsys.readouterr().err


def test_good_archive_is_read(archive: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The archive that the other tests spoil is read, and its temporary folder is removed."""
    assert _report(archive(), capsys) == (3, "")


@pytest.mark.parametrize(
    "name", ["../evil", "b/../../evil", "/tmp/evil-of-a-bundle", "b//evil", "b/./evil", "b\\evil", "b/" + "x" * 500, "b/x\x07/../y"]
)
def test_name_that_leads_out(
    name: str, archive: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads out of the folder is refused, and nothing is written there."""
    (tmp_path / "above" / "temporary").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "above" / "temporary"))
    code, err = _report(archive(_member(name, b"x")), capsys)
    assert code == 2
    assert "could lead out of its folder" in err
    assert not list(tmp_path.rglob("*evil*"))
    assert not Path("/tmp/evil-of-a-bundle").exists()  # one of the names
    assert not os.path.exists("/tmp/evil-of-a-bundle")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE])
def test_what_is_not_a_plain_file(kind: bytes, archive: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Links, pipes, devices and files with holes are refused."""
    code, err = _report(archive(_member("b/run/a/rank00001.h.1.jsonl", kind=kind, link="/etc/passwd")), capsys)
    assert code == 2
    assert "is not a bundle of ddp_probe" in err


def test_bomb(archive: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacking stops at the limit, however small the archive is."""
    monkeypatch.setattr(bundled, "MOST_BYTES", 1 << 20)
    code, err = _report(archive(_member("b/run/a/rank00001.h.1.jsonl", bytes(1 << 21))), capsys)
    assert (code, "has more than 1048576 bytes" in err) == (2, True)


def test_many_files(archive: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of files is limited too."""
    monkeypatch.setattr(bundled, "MOST_FILES", 10)
    code, err = _report(archive(*[_member("b/run/a/%d" % number) for number in range(20)]), capsys)
    assert (code, "more than 10 files" in err) == (2, True)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.97])
def test_cut_archive(share: float, archive: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """An archive that was cut is not complete, or no archive, and is never half read."""
    path = archive(_member("b/run/a/rank00001.h.1.jsonl", os.urandom(20000)))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    code, err = _report(path, capsys)
    assert code == 2
    assert "is not complete" in err
    assert "Copy or download it again." in err


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>404</html>",
        gzip.compress(b"a plain log\n" * 100),
        gzip.compress(b""),
        b"\x1f\x8b\x08garbage" * 9,
        gzip.compress(os.urandom(2048)),
    ],
    ids=["empty", "page", "log", "nothing", "garbage", "random"],
)
def test_not_a_tar(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not an archive at all is refused with what to do."""
    path = tmp_path / "b.tar.gz"
    path.write_bytes(data)
    code, err = _report(path, capsys)
    assert code == 2
    assert "what to do" in err


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"bundle": 2}, "of version 2"),
        ({"bundle": 1, "paths": ["../.."]}, "names files outside"),
        ({"bundle": 1, "paths": ["/etc"]}, "names files outside"),
        ({"bundle": 1, "paths": ["run/a"], "sources": {"/train.py": "../../../etc/passwd"}}, "names files outside"),
        ({"bundle": 1}, "names files outside"),
        ({"other": 1}, "is not valid"),
    ],
)
def test_manifest(manifest: Dict[str, Any], says: str, archive: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A manifest of another version, or one that points elsewhere, is refused."""
    code, err = _report(archive(manifest=manifest), capsys)
    assert (code, says in err) == (2, True)


def test_archive_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An archive without bundle.json is named as what it is not."""
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(_member("a/b.txt", b"x")[0], io.BytesIO(b"x"))
    code, err = _report(path, capsys)
    assert (code, "does not hold bundle.json" in err) == (2, True)


def test_source_of_the_reader_is_not_shown(archive: Callable[..., Path], tmp_path: Path) -> None:
    """While a bundle is read, a path in it never leads to a file of this machine."""
    from ddp_probe.reading import job_source

    own = tmp_path / "train.py"
    own.write_text("secret of the reader\n")
    assert job_source.read(str(own)) is not None
    with bundled.opened([str(archive())]):
        assert job_source.read(str(own)) is None


def test_no_folder_is_left(archive: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Good or hostile, what was unpacked is removed."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    members: List[List[Any]] = [[], [_member("../x", b"x")]]
    for each in members:
        _report(archive(*each), capsys)
        assert list(place.iterdir()) == []
