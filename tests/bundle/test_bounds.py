"""A bundle stays below its size, and says what that took."""

import json
import random
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from ddp_probe import cli
from ddp_probe.moving.bundle import make, stage
from ddp_probe.reading import bundled
from ddp_probe.shared.errors import UnusableError

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new" / "03_submodule_left_behind"
_RANDOM = random.Random(7)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return a run whose logs have a megabyte each that hardly compresses, in their middle, and a large list of parameters."""
    run = tmp_path / "run"
    (run / "models").mkdir(parents=True)
    for file in RECORDED.glob("*.*"):
        (run / file.name).write_bytes(file.read_bytes())
    for log in run.glob("rank*.jsonl"):
        lines = log.read_bytes().splitlines(keepends=True)
        noise = [b'{"event":"probe.warning","phase":"point","text":"%x"}\n' % _RANDOM.getrandbits(2000) for _ in range(1500)]
        log.write_bytes(b"".join([*lines[:-1], *noise, lines[-1]]))
    rows = ['["layer %x",[1],"float32",true,1]' % _RANDOM.getrandbits(400) for _ in range(2000)]
    (run / "models" / "0123456789abcdef.json").write_text("[\n%s\n]\n" % ",\n".join(rows))
    return run


def test_small_enough(large: Path, tmp_path: Path, bundle: Any, contents: Callable[[Path], Dict[str, bytes]], report: Any) -> None:
    """Logs lose their middle in whole lines, lists of parameters are left out, the listing says so, and the report still finds the cause."""
    made = bundle([large], tmp_path / "b.tar.gz", most=100_000)
    assert 50_000 < made.stat().st_size <= 100_000
    files = contents(made)
    held = json.loads(files[bundled.MANIFEST])
    cut = {file["path"]: file["bytes_left_out"] for file in held["files"] if file["bytes_left_out"]}
    logs = {name: data for name, data in files.items() if "/rank" in name and name.endswith(".jsonl")}
    assert set(cut) == set(logs)
    assert "No room is left" in held["left_out"]["run/run/models/0123456789abcdef.json"]
    for name, data in logs.items():
        there = (large / Path(name).name).read_bytes()
        assert len(data) + cut[name] == len(there)
        assert there.startswith(data[:5000])
        assert there.endswith(data[-5000:])
        assert all(json.loads(line) for line in data.splitlines())
    assert [finding["id"] for finding in json.loads(report(made)[1])["findings"]] == ["DDP104"]


def test_unpacked_size_is_bounded_too(large: Path, tmp_path: Path, bundle: Any, contents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What compresses well is cut as well, so that the reader's limit holds."""
    monkeypatch.setattr("ddp_probe.moving.bundle.stage.UNPACKED", 400_000)
    monkeypatch.setattr(bundled, "MOST_BYTES", 450_000)
    made = bundle([large], tmp_path / "b.tar.gz")
    assert sum(map(len, contents(made).values())) < 400_000
    with bundled.opened([str(made)]):
        pass


def test_does_not_fit(large: Path, tmp_path: Path, bundle: Any) -> None:
    """If no log finds room, nothing is written."""
    with pytest.raises(UnusableError, match="does not fit into 1000 bytes"):
        bundle([large], tmp_path / "b.tar.gz", most=1000)
    assert not (tmp_path / "b.tar.gz").exists()


def test_file_that_is_too_large_to_mask(large: Path, tmp_path: Path, bundle: Any, contents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file larger than the limit both ends are read."""
    monkeypatch.setattr(stage, "LARGEST", 200_000)
    files = contents(bundle([large], tmp_path / "b.tar.gz"))
    held = json.loads(files[bundled.MANIFEST])
    for file in held["files"]:
        if file["kind"] == "log" and "rank" in file["path"]:
            there = (large / Path(file["path"]).name).read_bytes()
            assert file["bytes"] <= 200_000
            assert file["bytes"] + file["bytes_left_out"] == len(there)
            assert there.endswith(files[file["path"]][-1000:])


def test_same_run_gives_the_same_archive(tmp_path: Path, large: Path) -> None:
    """Two bundles of one run differ in nothing but the time at which they were made."""
    packed = []
    for _ in range(2):
        with make.prepared(make.BundleRequest([str(large)], "b.tar.gz")) as made:
            packed.append([(file.path, file.bytes) for file in made.manifest.files])
    assert packed[0] == packed[1]


def test_listing_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The listing of many files is as short as that of a few, each file goes in once, and what the cut changed in the report is said."""
    run = tmp_path / "run"
    run.mkdir()
    lines = next(RECORDED.parent.glob("00_healthy_ddp/rank00000*.jsonl")).read_text().splitlines(keepends=True)
    noise = ['{"event":"probe.warning","phase":"point","seq":%d,"text":"%x"}\n' % (len(lines) - 1 + n, _RANDOM.getrandbits(4000)) for n in range(20)]
    text = "".join([*lines[:-1], *noise, lines[-1].replace('"seq":%d' % (len(lines) - 1), '"seq":%d' % (len(lines) + 19))])
    for rank in range(40):
        own = text.replace('"rank":0', '"rank":%d' % rank).replace('"world_size":2', '"world_size":40')
        (run / ("rank%05d.h.%d.jsonl" % (rank, rank))).write_text(own)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["bundle", "run/", "--list", "--max-bytes", "100k"]) == 0
    out = " ".join(capsys.readouterr().out.partition("### Environment")[0].split())
    assert "40 logs" in out
    assert "from the middle of rank00000.h.0.jsonl, rank00001.h.1.jsonl, rank00002.h.2.jsonl and 37 more" in out
    assert "and over this bundle undecided." in out
