"""Fixtures that build the package for real and install it into environments made for one test.

Builds run offline and without isolation: setuptools and wheel come with the test extra, and a fresh environment borrows them through PYTHONPATH.
"""

import configparser
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import setuptools

_BUILD_TOOLS = ("setuptools", "pkg_resources", "_distutils_hack", "wheel", "packaging")
_OUTSIDE = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "ddp_probe_runs")


@pytest.fixture(scope="session")
def setup_cfg(repo: Path) -> configparser.ConfigParser:
    """The package's metadata."""
    parser = configparser.ConfigParser()
    parser.read(repo / "setup.cfg", encoding="utf-8")
    return parser


@pytest.fixture(scope="session")
def sources(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, so that building leaves nothing behind in the repository."""
    target = tmp_path_factory.mktemp("sources") / "tree"
    shutil.copytree(repo, target, ignore=_OUTSIDE)
    return target


def _build(hook: str, tree: Path, target: Path) -> Path:
    """Call a hook of the build backend, as pip and build do, and return the file that it names."""
    code = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
    done = subprocess.run([sys.executable, "-c", code, hook, str(target)], cwd=tree, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="session")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the tree."""
    return _build("build_wheel", sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution built from the tree."""
    return _build("build_sdist", sources, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the unpacked source distribution alone."""
    folder = tmp_path_factory.mktemp("wheel-of-sdist")
    shutil.unpack_archive(str(sdist), str(folder))
    (tree,) = folder.iterdir()
    return _build("build_wheel", tree, folder)


@pytest.fixture(scope="session")
def build_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH that holds setuptools and wheel of this environment, and nothing else."""
    folder = tmp_path_factory.mktemp("build-tools")
    site = Path(setuptools.__file__).parent.parent
    for name in _BUILD_TOOLS:
        for found in [site / name, *site.glob(name + "-*.dist-info")]:
            if found.is_dir():
                (folder / found.name).symlink_to(found)
    return folder


@pytest.fixture(scope="module")
def fresh_env(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Make an environment with pip in it; returns its interpreter."""

    def make() -> Path:
        folder = tmp_path_factory.mktemp("env")
        venv.create(str(folder), with_pip=True)
        return folder / "bin" / "python"

    return make


@pytest.fixture(scope="session")
def install(build_tools: Path, clean_env: Callable[..., Dict[str, str]], run_python: Callable[..., Any]) -> Callable[..., None]:
    """Install into an environment with its own pip, offline, without dependencies."""

    def run(python: Path, *what: str) -> None:
        command = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", *what]
        done = run_python(command, python=str(python), env=clean_env(PYTHONPATH=str(build_tools)), cwd=build_tools, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr

    return run
