"""What the tests of bundles share: recorded jobs with their source at hand, and bundles of them made in this process."""

import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.moving.bundle import make, stage
from ddp_probe.reading import bundled
from ddp_probe.reading.load_run import load
from ddp_probe.showing import as_json, terminal
from ddp_probe.showing.masker import Masker

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "jobs"), str(TESTS / "masking")]
RECORDED = TESTS / "recorded"


@pytest.fixture(scope="session")
def at_home() -> Callable[[Path, Path], Path]:
    """Take a recorded job and a place; return a copy whose paths are those of this checkout, so that the job's source is at hand."""

    def copied(folder: Path, copy: Path) -> Path:
        shutil.copytree(folder, copy)
        for path in [path for path in copy.rglob("*") if path.is_file()]:
            path.write_text(path.read_text(encoding="utf-8").replace("/train/", "%s/" % (TESTS / "jobs")), encoding="utf-8")
        return copy

    return copied


@pytest.fixture(scope="session")
def bundle() -> Callable[..., Path]:
    """Take paths to bundle and the archive to write; return it."""

    def made(paths: List[Path], output: Path, **options: Any) -> Path:
        with make.prepared(make.BundleRequest(list(map(str, paths)), str(output), **options)) as found:
            stage.place(found.packed, str(output), force=False)
        return output

    return made


@pytest.fixture(scope="session")
def report() -> Callable[[Path], Tuple[str, str]]:
    """Take a run or a bundle; return the report as text and as JSON."""

    def both(path: Path) -> Tuple[str, str]:
        with bundled.opened([str(path)]) as inside:
            diagnosis = judge(load(inside))
            return "\n".join(line.text for line in terminal.lines(diagnosis, 80)), as_json.text(diagnosis)

    return both


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], Dict[str, bytes]]:
    """Take a bundle; return its files by path below its one folder."""

    def read(path: Path) -> Dict[str, bytes]:
        with tarfile.open(path) as tar:
            return {member.name.partition("/")[2]: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]

    return read


@pytest.fixture
def masker() -> Masker:
    """A masker that knows no value of this shell's environment."""
    return Masker({})
