"""What the probe itself sees of a hostile file, in the job's own process: a few reads, no exception, nothing executed."""

import os
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from changed_files import for_changed_files
from corpus_table import CORPUS, truth
from test_checkpoint_hostile import bombs, lies

from ddp_probe.traced.facts import checkpoint_file

_READ = 2 << 20  # Bytes; what the probe's page promises is less.
_FORM = "import json, os, sys, torch\nsafe = {'weights_only': True} if torch.__version__ >= '2' else {}\n"
_LOADS = """
for name in sorted(os.listdir(sys.argv[1])):
    try:
        torch.load(os.path.join(sys.argv[1], name), map_location="cpu", **safe)
        print(name, "loaded")
    except Exception as exc:
        print(name, type(exc).__name__, len(str(exc)))
"""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> List[int]:
    """The lengths that are asked for while the probe looks."""
    lengths: List[int] = []
    read = os.pread

    def pread(fd: int, length: int, offset: int) -> bytes:
        lengths.append(length)
        return read(fd, length, offset)

    monkeypatch.setattr("ddp_probe.traced.facts.checkpoint_file.os.pread", pread)
    return lengths


def _look(path: Path, data: bytes, counted: List[int]) -> str:
    path.write_bytes(data)
    counted.clear()
    found = checkpoint_file.look(str(path))
    places = checkpoint_file.locations(str(path))
    assert sum(counted) <= _READ, (found, sum(counted))
    assert len(places) <= 64
    return found.error


def test_hostile_files(tmp_path: Path, counted: List[int]) -> None:
    """A bomb or an archive that lies is looked at in bounded reads, without an exception and without a descriptor left."""
    for name, data in [*((name, made()) for name, made in bombs()), *lies()]:
        assert (name, _look(tmp_path / "model.pth", data, counted)) == (name, "")
    assert str(tmp_path / "model.pth") not in [os.path.realpath("/proc/self/fd/" + number) for number in os.listdir("/proc/self/fd")]


def test_changed_files(tmp_path: Path, counted: List[int], whole: bool) -> None:
    """Files of torch with bytes changed or cut are looked at without an error of ours."""
    errors = set()
    files = [(CORPUS / file).read_bytes() for file in sorted(truth())]
    for_changed_files(lambda data: errors.add(_look(tmp_path / "model.pth", data, counted)), files, 20_000 if whole else 200)
    assert errors == {""}


@pytest.mark.slow
def test_a_job_that_loads_them(
    run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], read_events: Callable[..., List[Dict[str, Any]]], tmp_path: Path
) -> None:
    """A job that tries to load such files prints what it prints without the probe, and each load is recorded."""
    pytest.importorskip("torch")
    files = [(CORPUS / file).read_bytes() for file in sorted(truth()) if file.endswith(".pt")]
    (tmp_path / "files").mkdir()
    made: List[bytes] = []
    for_changed_files(made.append, files, 40)
    for number, data in enumerate(made):
        (tmp_path / "files" / ("%02d.pt" % number)).write_bytes(data)
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    (tmp_path / "load.py").write_text(_FORM + _LOADS)
    plain = run_python([tmp_path / "load.py", tmp_path / "files"], env=armed(None, **place), cwd=tmp_path)
    probed = run_python([tmp_path / "load.py", tmp_path / "files"], env=armed(tmp_path / "runs", **place), cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert (probed.returncode, probed.stdout) == (0, plain.stdout), probed.stderr
    (log,) = (tmp_path / "runs").rglob("rank00000.*.jsonl")
    events = read_events(log)
    assert len([event for event in events if event["event"] == "checkpoint.load" and event["phase"] == "begin"]) == len(made)
    assert not [event for event in events if event["event"] == "probe.fault"]
