"""Promise 1: nothing that anybody does to the files of a run's folder while the job runs ends it or changes it."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from contract_pieces import PROGRAMS
from schedule import seed

from ddp_probe.shared.ours import suppress

_SECONDS = "4"


def _cut(path: Path) -> None:
    os.truncate(str(path), 0)


def _halve(path: Path) -> None:
    os.truncate(str(path), path.stat().st_size // 2)


def _copy_and_cut(path: Path) -> None:  # As copytruncate of logrotate does.
    shutil.copy(str(path), str(path) + ".1")
    _cut(path)


def _replace(path: Path) -> None:
    other = path.with_name(path.name + ".other")
    other.write_bytes(b"something else\n")
    other.replace(path)


def _overwrite(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b"\xff" * 3000)


def _close(path: Path) -> None:
    path.chmod(0)


def _delete(path: Path) -> None:
    path.unlink()


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("elsewhere"))


def _folder_away(path: Path) -> None:
    path.parent.rename(path.parent.with_name("%s.away.%d" % (path.parent.name, time.monotonic_ns())))


def _mounted(place: Path) -> bool:
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", place], capture_output=True, check=False)
    return done.returncode == 0


def _fill(place: Path) -> None:
    with open(place / "full", "wb", buffering=0) as file:
        for _ in range(512):  # twice the size of the file system, which may not be mounted at this moment
            file.write(b"\0" * 4096)


def _free(place: Path) -> None:
    (place / "full").unlink()


def _remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", "remount," + how, place], capture_output=True, check=False)


def _read_only(place: Path) -> None:
    _remount(place, "ro")


def _writable(place: Path) -> None:
    _remount(place, "rw")


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", place], capture_output=True, check=False)


def _mount_again(place: Path) -> None:
    if not os.path.ismount(place):
        _mounted(place)


def _forbid(place: Path) -> None:
    for path in (place, *place.iterdir()):
        path.chmod(0)


_OF_A_DISK: List[Callable[[Path], None]] = [_fill, _free, _read_only, _writable, _forbid, _unmount, _mount_again]
_ATTACKS: List[Callable[[Path], None]] = [_cut, _halve, _copy_and_cut, _replace, _overwrite, _close, _delete, _link, _folder_away]


def _launch(env: Dict[str, str], folder: Path, port: int) -> "subprocess.Popen[str]":
    folder.mkdir()
    command = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=%d" % port]
    line = [sys.executable, *command, str(PROGRAMS / "steps.py"), _SECONDS]
    return subprocess.Popen(line, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def plain(armed: Any, free_port: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the job prints without the probe."""
    process = _launch(armed(None), tmp_path_factory.mktemp("plain") / "job", free_port())
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "attacks", [[one] for one in _ATTACKS[:2]] + [_ATTACKS[:-1], _ATTACKS], ids=["cut", "halved", "any file", "any file and the folder"]
)
def test_the_job_goes_on(attacks: List[Callable[[Path], None]], plain: str, armed: Any, free_port: Any, tmp_path: Path) -> None:
    """Exit code and output are those without the probe, whatever is cut, replaced, closed, deleted or moved away at drawn moments."""
    draw, runs = random.Random(seed()), tmp_path / "runs"
    process = _launch(armed(runs, DDP_PROBE_STRICT=None, DDP_PROBE_ECHO="off", DDP_PROBE_REPORT="off"), tmp_path / "job", free_port())
    done = 0
    while process.poll() is None:
        files = [path for path in runs.rglob("*") if path.is_file() and not path.is_symlink() and (len(attacks) > 2 or path.suffix == ".ledger")]
        if files:
            with suppress(OSError):
                draw.choice(attacks)(draw.choice(files))
                done += 1
        time.sleep(draw.uniform(0.0, 0.1))
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, plain), err
    assert done >= 4  # Fewer and fewer files are left.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return where a small file system of its own is mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    if not hasattr(os, "geteuid") or os.geteuid() or not _mounted(place):
        pytest.skip("Only root may mount a file system.")
    yield place
    while os.path.ismount(place):
        _unmount(place)


@pytest.mark.slow
def test_the_job_outlives_its_disk(disk: Path, plain: str, armed: Any, free_port: Any, tmp_path: Path) -> None:
    """Exit code and output are those without the probe if the file system of its runs is filled, remounted, closed and unmounted at drawn moments."""
    draw, done = random.Random(seed()), 0
    process = _launch(armed(disk / "runs", DDP_PROBE_STRICT=None, DDP_PROBE_ECHO="off", DDP_PROBE_REPORT="off"), tmp_path / "job", free_port())
    while process.poll() is None:
        if done or any(disk.rglob("*.ledger")):
            with suppress(OSError):
                draw.choice(_OF_A_DISK)(disk)
            done += 1
        time.sleep(draw.uniform(0.0, 0.2))
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, plain), err
    assert done >= 8
