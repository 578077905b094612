"""Fixtures that build the package for real and install it into environments made for one file of tests.

Builds run offline and without isolation: setuptools and wheel come with the test extra, and a fresh environment borrows them through PYTHONPATH.
"""

import configparser
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Set

import pytest
import setuptools

_BUILD_TOOLS = ("setuptools", "pkg_resources", "_distutils_hack", "wheel", "packaging")
_OUTSIDE = shutil.ignore_patterns(
    "*.pyc", ".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "ddp_probe_runs", ".verdict.json"
)


@pytest.fixture(scope="session")
def setup_cfg(repo: Path) -> configparser.ConfigParser:
    """The package's metadata."""
    parser = configparser.ConfigParser()
    parser.read(repo / "setup.cfg", encoding="utf-8")
    return parser


@pytest.fixture(scope="session")
def checkout(repo: Path) -> Set[str]:
    """Every file of the checkout that a tool has not left behind, by its path from the root."""
    found: Set[str] = set()
    for folder, folders, names in os.walk(repo):
        skipped = _OUTSIDE(folder, [*folders, *names])
        folders[:] = [name for name in folders if name not in skipped]
        found.update(Path(folder, name).relative_to(repo).as_posix() for name in names if name not in skipped)
    return found


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
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree that the source distribution unpacks to."""
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(str(sdist), str(folder))
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="session")
def wheel_of_sdist(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the unpacked source distribution alone."""
    return _build("build_wheel", unpacked, tmp_path_factory.mktemp("wheel-of-sdist"))


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


@pytest.fixture(scope="session")
def fresh_env(tmp_path_factory: pytest.TempPathFactory, run_python: Callable[..., Any]) -> Callable[..., Path]:
    """Make an environment of an interpreter, without any package, not even pip; returns its own interpreter."""

    def make(base: str = sys.executable) -> Path:
        folder = tmp_path_factory.mktemp("env")
        done = run_python(["-m", "venv", "--without-pip", folder], python=base)
        assert done.returncode == 0, done.stderr
        return folder / "bin" / "python"

    return make


@pytest.fixture(scope="session")
def pip(run_python: Callable[..., Any]) -> Callable[..., None]:
    """Run a command of the tests' own pip for the interpreter of another environment."""

    def run(python: Path, command: str, *words: Any, env: Optional[Dict[str, str]] = None, timeout: float = 240) -> None:
        done = run_python(["-m", "pip", "--python", python, command, "-q", *words], env=env, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def install(build_tools: Path, clean_env: Callable[..., Dict[str, str]], pip: Callable[..., None]) -> Callable[..., None]:
    """Install into an environment, offline, without dependencies; compiling would take longer than all that runs there."""

    def run(python: Path, *what: Any) -> None:
        options = ("--no-index", "--no-deps", "--no-build-isolation", "--no-compile")
        pip(python, "install", *options, *what, env=clean_env(PYTHONPATH=str(build_tools)))

    return run


@pytest.fixture(scope="session")
def dependency_wheels(setup_cfg: configparser.ConfigParser, pip: Callable[..., None], run_python: Callable[..., Any]) -> Callable[..., Path]:
    """Return a folder with the wheels of the dependencies for a Python, downloaded once per environment of the tests."""

    def folder(python: Path) -> Path:
        version = run_python("import sys; print('%d.%d' % sys.version_info[:2])", python=str(python)).stdout.strip()
        wanted = setup_cfg["options"]["install_requires"].strip().splitlines()
        kept = Path(sys.prefix, "dependency-wheels", version)
        if not kept.is_dir():
            partial = kept.with_name("partial-%d" % os.getpid())
            pip(python, "download", "--only-binary=:all:", "-d", partial, *wanted)
            with contextlib.suppress(OSError):  # Somebody else was faster.
                partial.rename(kept)
        return kept

    return folder
