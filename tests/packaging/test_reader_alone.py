"""Logs are read on a machine that has neither torch nor what the traced side needs."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

# typing_extensions is needed by Python 3.8 alone.
_NEEDED = ("msgspec", "typing_extensions")
_ABSENT = ("torch", "mmengine", "wrapt", "structlog", "numpy", "rich", "pygments")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> Path:
    """A folder with the package and what its reading side needs, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "ddp_probe").symlink_to(repo / "ddp_probe")
    for name in _NEEDED:
        try:
            found = Path(str(importlib.import_module(name).__file__))
        except ImportError:  # typing_extensions, which a newer Python does without
            continue
        place = found.parent if found.name == "__init__.py" else found
        (folder / place.name).symlink_to(place)
    return folder


def _run(bare: Path, code: str, cwd: Path, *args: str) -> Any:
    """Start this Python without its site-packages: -S leaves them out, -I everything of the environment."""
    script = "import sys; sys.path.insert(0, %r); %s" % (str(bare), code)
    command = [sys.executable, "-I", "-S", "-B", "-c", script, *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", _ABSENT)
def test_the_interpreter_has_none_of_them(bare: Path, tmp_path: Path, name: str) -> None:
    """The interpreter of these tests cannot import what the reading side is to do without."""
    assert "ModuleNotFoundError" in _run(bare, "import %s" % name, tmp_path).stderr


@pytest.mark.parametrize(
    ("command", "code", "prints"),
    [
        (["report", "{run}"], 1, "DDP"),
        (["report", "--json", "{run}"], 1, '"verdict":'),
        (["report", "--brief", "{run}"], 1, "DDP"),
        (["report", "{run}/output.txt"], 1, "DDP"),
        (["logs", "{run}"], 0, "ddp.init"),
        (["logs", "--raw", "{run}"], 0, '"event":"ddp.init"'),
        (["runs", "{run}/.."], 0, "03_submodule_left_behind"),
        (["explain"], 0, "DDP"),
        (["schema"], 0, "process.start"),
        (["help"], 0, "report"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_reads_without_them(bare: Path, repo: Path, tmp_path: Path, command: List[str], code: int, prints: str) -> None:
    """Each reading command does its work there."""
    recorded = repo / "tests" / "recorded" / ("legacy" if sys.version_info < (3, 10) else "new") / "03_submodule_left_behind"
    run = tmp_path / "runs" / recorded.name
    shutil.copytree(str(recorded), str(run))
    words = [word.format(run=run) for word in command]
    done = _run(bare, "from ddp_probe.cli import main; sys.exit(main(sys.argv[1:]))", tmp_path, *words)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    assert prints in done.stdout
