"""Pipes, links to themselves, folders and files full of holes with the names of a run's files: every reader ends, and says what it did not read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

import ddp_probe
from ddp_probe.reading import find
from ddp_probe.shared import regular_files
from ddp_probe.shared.errors import UsageError

_RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new" / "00_healthy_ddp"
_READ = ("report", "report --json", "report --html x.html", "logs", "watch --once", "stacks --wait 0", "runs")
_COMMANDS = (*_READ, "fold -o x.fold", "bundle -o x.tar.gz")


def _strange(folder: Path, kind: str) -> None:
    for name in ("rank00007.h.1.jsonl", "rank00007.h.1.ledger", "rank00007.h.1.stacks", "launcher.h.jsonl", "other.fold"):
        path = folder / name
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "link to itself":
            path.symlink_to(name)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A healthy run."""
    folder = tmp_path / "runs" / "20261122-145847-2863-e258"
    shutil.copytree(_RECORDED, folder)
    return folder


@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "link to itself", "folder", "device"])
def test_every_command_ends(run: Path, run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], command: str, kind: str) -> None:
    """Beside the files of a run there are others that are not files: each command ends by itself, with an exit code of its own."""
    _strange(run, kind)
    where = [] if command == "runs" else [str(run)]
    env = clean_env(DDP_PROBE_DIR=str(run.parent))
    done = run_python(["-m", "ddp_probe", *command.split(), *where], env=env, cwd=run.parent, timeout=100)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2, 3)


def test_what_is_no_file_is_named(run: Path) -> None:
    """A pipe with a rank's name is said to be unread, with the reason."""
    _strange(run, "pipe")
    unread = ddp_probe.read(run).inventory.unreadable
    assert unread[str(run / "rank00007.h.1.jsonl")] == "Not a regular file."


def test_a_path_with_a_null_character_is_one_clear_error() -> None:
    """No file has a name with a null character; read() says so."""
    with pytest.raises(UsageError, match="null character"):
        ddp_probe.read("a\0b")
    with pytest.raises(OSError, match="No file has such a name"):
        regular_files.open_bytes("a\0b")


_COUNTS = """
import sys
from ddp_probe.reading.load_run import load
run = load(sys.argv[1:])
print(dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())["rchar"])
"""


@pytest.mark.parametrize("name", ["rank00009.h.1.jsonl", "train.log"])
def test_holes_are_not_read(run: Path, name: str) -> None:
    """Of a file of eight gigabytes that is a hole nearly all is passed over, and what stands behind the hole is read."""
    sparse = run / name
    with sparse.open("wb") as file:
        file.truncate(8 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\nRuntimeError: behind the hole\n")
    done = subprocess.run([sys.executable, "-c", _COUNTS, str(sparse)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200 << 20
    if name == "train.log":
        assert [failure.message for failure in ddp_probe.read(sparse).failures] == ["behind the hole"]


def test_programs_and_archives_are_no_logs(tmp_path: Path) -> None:
    """Of a folder's files that a pattern matches, programs and archives are said to be unread, and their bytes are not kept."""
    shutil.copy(sys.executable, tmp_path / "python")
    shutil.make_archive(str(tmp_path / "packed"), "gztar", _RECORDED)
    (tmp_path / "train.log").write_text("epoch 1\r\x1b[Kepoch 2\nRuntimeError: boom\n")
    (tmp_path / "cut.log").write_bytes(b"\0" * 5000 + b"RuntimeError: after zeros\n")
    run = ddp_probe.read(str(tmp_path / "[pcjt]*[!z]"))
    assert {Path(file).name: why for file, why in run.inventory.unreadable.items()} == {"python": "It is not a text."}
    assert {"after zeros", "boom"} <= {failure.message for failure in run.failures}


def test_a_pattern_that_matches_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern with more matches than a run can have files is one error that says how many are read."""
    monkeypatch.setattr(find, "MOST_MATCHES", 3)
    for number in range(4):
        (tmp_path / ("%d.log" % number)).write_text("x\n")
    with pytest.raises(UsageError, match="matches more than 3 files"):
        ddp_probe.read(str(tmp_path / "*.log"))
    assert len(ddp_probe.read(str(tmp_path / "[012].log")).texts) == 3
    monkeypatch.setattr(find, "MOST_TEXTS", 2)
    with pytest.raises(UsageError, match="at most 2 are read"):
        ddp_probe.read(str(tmp_path / "[012].log"))
