"""A copy of what scripts/new reads and writes, in which a skeleton is written, printed and tested."""

import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List, Set

import pytest

_FOLDERS = ("ddp_probe", "docs", "scripts", "sitecustomize_templates")
_TESTS = ("advice", "diagnose", "facts", "probes", "record", "remedies", "rules", "accelerator", "jobs")
_FILES = (
    "setup.cfg",
    "pyproject.toml",
    "CONTRIBUTING.md",
    "tests/conftest.py",
    "tests/costs.py",
    "tests/light.py",
    "tests/ports.py",
    "tests/again.py",
    "tests/schedule.py",
    "tests/test_schema.py",
    "tests/test_accelerators.py",
)


class Checkout:
    """The copy, and commands that run in it."""

    def __init__(self, root: Path, run_python: Callable[..., Any], env: Dict[str, str]) -> None:
        self.root = root
        self._run = run_python
        self.env = env

    def run(self, *words: Any, timeout: float = 240) -> Any:
        """Run a Python program of the copy."""
        return self._run(words, env=self.env, cwd=self.root, timeout=timeout)

    def new(self, *words: str) -> Any:
        """Run scripts/new."""
        return self.run("scripts/new", *words)

    def made(self, *words: str) -> List[str]:
        """Write a skeleton and print the tables; return the files that have changed."""
        before = self._files()
        for command in (("scripts/new", *words), ("scripts/render_docs",), ("scripts/render_docs", "--check")):
            done = self.run(*command)
            assert done.returncode == 0, done.stdout + done.stderr
        after = self._files()
        return sorted(name for name in after if after[name] != before.get(name))

    def tested(self, *words: str) -> None:
        """Run tests of the copy; they must pass, and there must be one."""
        done = self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", self.root.with_name("tests"), *words)
        assert done.returncode == 0, done.stdout + done.stderr

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a text that a file has once."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, (path, old, text.count(old))
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def _files(self) -> Dict[str, bytes]:
        skipped: Set[str] = {"__pycache__", ".pytest_cache"}
        paths = [path for path in self.root.rglob("*") if path.is_file() and not skipped & set(path.parts)]
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def checkout(repo: Path, tmp_path: Path, run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]]) -> Checkout:
    """A checkout of its own, compiled files included, with DDP_PROBE_STRICT=1."""
    root = tmp_path / "checkout"
    for name in _FOLDERS:
        shutil.copytree(str(repo / name), str(root / name))
    for name in _TESTS:
        ignored = shutil.ignore_patterns("collected", "programs", "*.so")
        shutil.copytree(str(repo / "tests" / name), str(root / "tests" / name), ignore=ignored)
    shutil.copytree(str(repo / "tests/recorded/new/00_healthy_ddp"), str(root / "tests/recorded/new/00_healthy_ddp"))
    for name in _FILES:
        shutil.copy2(str(repo / name), str(root / name))
    return Checkout(root, run_python, clean_env(PYTHONPATH=str(root)))
