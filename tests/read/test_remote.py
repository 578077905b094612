"""Addresses of other file systems: what is read there is what is read here, and fsspec is imported for nothing else."""

import json
import os
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ddp_probe import cli

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
JOB = "12_data_error_on_one_rank"


@pytest.fixture
def store() -> Iterator[Any]:
    """A file system in memory that holds a recorded run in /logs/run7."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.put(str(RECORDED / JOB), "/logs/run7", recursive=True)
    yield system
    system.rm("/", recursive=True)


def _told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code = cli.main(["report", "--json", *words])
    found = json.loads(capsys.readouterr().out)
    return code, found["verdict"], [(each["id"], each["ranks"], each["verdict"]) for each in found["findings"]], found["inventory"]["files"]


def test_a_run_in_a_store_is_the_run(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The report over an address says what the one over the folder says, and names the address and no temporary folder."""
    here, there = _told(capsys, str(RECORDED / JOB)), _told(capsys, "memory://logs/run7")
    assert there[:3] == here[:3]
    cli.main(["report", "memory://logs/run7"])
    page = capsys.readouterr().out
    assert "memory://logs/run7" in page
    assert "ddp_probe-remote" not in page


def test_folds_in_a_store_are_the_run_in_any_order(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Each part of the files, with the ledgers beside them, is folded into the store; the folds in either order say what the run says."""
    parts = (["memory://logs/run7/rank00000*.jsonl"], ["memory://logs/run7/rank00001*.jsonl", "memory://logs/run7/launcher*.jsonl"])
    for number, part in enumerate(parts):
        assert cli.main(["fold", *part, "-o", "memory://folds/%d.fold" % number]) == 0
    whole = _told(capsys, str(RECORDED / JOB))[:3]
    assert _told(capsys, "memory://folds/*.fold")[:3] == whole
    assert _told(capsys, "memory://folds/1.fold", "memory://folds/0.fold")[:3] == whole
    assert store.find("/folds") == ["/folds/0.fold", "/folds/1.fold"]


def test_a_name_in_a_store_leads_nowhere_else(store: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A key with .. in it is left out, and the run is read without it."""
    store.store["/logs/run7/../../../../../../../..%s/planted.jsonl" % tmp_path] = store.store[store.find("/logs/run7")[0]]
    assert _told(capsys, "memory://logs/run7")[1] == "found"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["memory://nowhere/x", "nothing-has-this://x/y", "memory://nowhere/*.fold"])
def test_what_is_not_there_is_said(store: Any, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An address that cannot be read is three lines and exit code 2."""
    assert cli.main(["report", address]) == 2
    error = capsys.readouterr().err.splitlines()
    assert address in error[0]
    assert [line.split(":")[0].strip() for line in error[1:]] == ["why", "what to do"]


def test_fsspec_is_imported_for_an_address_alone(run_python: Callable[..., Any], tmp_path: Path) -> None:
    """Without fsspec a run of this host is read, and an address says what to install."""
    code = "import sys; sys.modules['fsspec'] = None; from ddp_probe.cli import main; print(main(sys.argv[1:]))"
    assert run_python(["-c", code, "report", "--brief", RECORDED / JOB]).stdout.splitlines()[-1] == "1"
    done = run_python(["-c", code, "fold", "s3://x/y", "-o", tmp_path / "a.fold"])
    assert "pip install 'ddp-probe[remote]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_fold_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A fold that is there is replaced; if nothing can be folded it stays, and no draft is left."""
    (tmp_path / "a.fold").write_text("old")
    assert cli.main(["fold", str(tmp_path / "nothing"), "-o", str(tmp_path / "a.fold")]) == 2
    assert (tmp_path / "a.fold").read_text() == "old"
    assert cli.main(["fold", str(RECORDED / JOB), "-o", str(tmp_path / "a.fold")]) == 0
    assert (tmp_path / "a.fold").read_bytes().startswith(b"ddp_probe fold 1\n")
    assert os.listdir(str(tmp_path)) == ["a.fold"]
