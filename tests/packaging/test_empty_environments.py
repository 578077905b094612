"""The wheel and the sdist are installed, with their dependencies, into empty environments of several Pythons, and used there without torch."""

import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

_OWN = sys.version_info[:2]
# Each stack of the tests has its own Python; the newer stack takes those that have none.
_VERSIONS = [_OWN, *((3, minor) for minor in (13, 14) if _OWN >= (3, 11))]
# Stands for torch: the one function that the probe watches here.
_TORCH = "def load(f, map_location=None):\n    return f\n"
_TRAIN = "from torch.serialization import load\nload('weights.pth', map_location='cpu')\n"
_INSTALLED = """
from importlib.metadata import distribution
print(*sorted("%s %s" % (file, file.hash) for file in distribution("ddp-probe").files if file.hash), sep=chr(10))
"""
Run = Callable[..., Any]


@pytest.fixture(scope="module", params=_VERSIONS, ids=lambda version: "%d.%d" % version)
def empty(request: Any, interpreters: List[Any], fresh_env: Callable[..., Path]) -> Tuple[str, Path]:
    """An environment without any package, not even pip; its version and its interpreter."""
    found = [each.path for each in interpreters if each.version == request.param]
    name = "%d.%d" % request.param
    if not found:
        pytest.skip("There is no Python %s on this machine." % name)
    return name, fresh_env(found[0])


@pytest.fixture(scope="module")
def installed(empty: Tuple[str, Path], dependency_wheels: Callable[[Path], Path], wheel: Path, pip: Run) -> Path:
    """The folder of programs of that environment, into which the wheel was installed."""
    python = empty[1]
    pip(python, "install", "--no-index", "--no-compile", "--find-links", dependency_wheels(python), wheel)
    return python.parent


def test_the_package_works_in_an_empty_environment(
    installed: Path, run_python: Run, clean_env: Callable[..., Dict[str, str]], repo: Path, tmp_path: Path
) -> None:
    """After the install the command installs the activator, records a job, reports on a recorded run, and removes what it installed."""
    env = clean_env(PYTHONPATH=None)

    def command(*words: Any, code: int = 0) -> str:
        done = run_python([installed / "ddp-probe", *words], python=str(installed / "python"), env=env, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (code, ""), done.stdout + done.stderr
        return str(done.stdout)

    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "torch" / "serialization.py").write_text(_TORCH, encoding="utf-8")
    (tmp_path / "train.py").write_text(_TRAIN, encoding="utf-8")
    assert "proved" in command("install")
    assert json.loads(command("status", "--json"))["activator"]["state"] == "active"
    job = run_python(["train.py"], python=str(installed / "python"), env={**env, "DDP_PROBE": "1", "RANK": "0", "WORLD_SIZE": "1"}, cwd=tmp_path)
    assert (job.returncode, job.stdout, job.stderr) == (0, "", "")
    assert '"event":"checkpoint.load","phase":"end"' in command("logs", "--raw")
    recorded = repo / "tests" / "recorded" / ("legacy" if sys.version_info < (3, 10) else "new") / "03_submodule_left_behind"
    assert "DDP104" in command("report", recorded, code=1)
    assert "removed" in command("uninstall")
    assert json.loads(command("status", "--json"))["activator"]["state"] == "absent"


def test_the_sdist_installs_what_the_wheel_does(
    installed: Path, empty: Tuple[str, Path], sdist: Path, install: Run, run_python: Run, tmp_path: Path
) -> None:
    """pip builds the sdist with that Python, and what it puts there has the same files with the same checksums, but for what names the wheel."""
    if empty[0] == "%d.%d" % _OWN:
        pytest.skip("test_installed.py installs the sdist with the Python of the tests.")
    by_wheel = run_python(_INSTALLED, python=str(installed / "python"), cwd=tmp_path).stdout
    install(empty[1], "--force-reinstall", sdist)
    by_sdist = run_python(_INSTALLED, python=str(installed / "python"), cwd=tmp_path).stdout
    ours = [[line for line in text.splitlines() if "/direct_url.json " not in line and "/RECORD " not in line] for text in (by_wheel, by_sdist)]
    assert ours[0] == ours[1]
    assert len(ours[0]) > 300
