"""The scripts say what they need before they do anything, and find the Python that has it."""

import configparser
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest


@pytest.fixture
def script(repo: Path, clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> Callable[..., Any]:
    """Run one of the scripts from elsewhere, with a home folder that holds no Python."""

    def run(*command: str, **extra: str) -> Any:
        env = clean_env(HOME=str(tmp_path), PYENV_ROOT=str(tmp_path), **extra)
        line: List[str] = [str(repo / command[0]), *command[1:]]
        return subprocess.run(line, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture
def no_python(tmp_path: Path) -> str:
    """A PATH with the tools of a shell script, and a python3.8 that is a shim leading nowhere."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "env", "dirname", "head", "cat"):
        found = [Path(place, name) for place in ("/usr/bin", "/bin") if Path(place, name).exists()]
        (folder / name).symlink_to(found[0])
    shim = folder / "python3.8"
    shim.write_text("#!/bin/sh\necho 'python3.8: command not found' >&2\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("name", ["scripts/test", "scripts/demo", "scripts/start_8card_training.sh", "scripts/gpu_check"])
def test_help(script: Callable[..., Any], name: str) -> None:
    """--help prints the usage in at most 80 columns, builds nothing and ends with 0."""
    done = script(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


@pytest.mark.parametrize(("arguments", "version"), [([], "3.8"), (["--legacy"], "3.8"), (["--clients"], "3.11"), (["--current"], "3.11")])
def test_no_python_is_one_clear_line(script: Callable[..., Any], no_python: str, arguments: List[str], version: str) -> None:
    """Where no Python fits, a shim that fails included, one line says which is needed and where it was looked for; exit code 2."""
    done = script("scripts/test", *arguments, PATH=no_python)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "needs Python " + version in done.stderr.replace("Needs", "needs")
    assert "DDP_PROBE_PYTHON" in done.stderr


def test_a_wrong_interpreter_is_refused(script: Callable[..., Any]) -> None:
    """An interpreter named by DDP_PROBE_PYTHON that does not run is refused by name; exit code 2."""
    done = script("scripts/test", DDP_PROBE_PYTHON="/bin/false")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "DDP_PROBE_PYTHON=/bin/false" in done.stderr


def test_the_demo_takes_no_arguments(script: Callable[..., Any]) -> None:
    """An unknown argument is refused with exit code 2."""
    done = script("scripts/demo", "--fast")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--fast" in done.stderr


_SCRIPTS = ("bench", "judge_cases", "new", "record_jobs", "render_docs", "score_partings", "simulate_ranks")


@pytest.fixture
def newcomer(repo: Path, tmp_path: Path, clean_env: Callable[..., Dict[str, str]]) -> Callable[..., Any]:
    """Run a script of a copy of the checkout with a Python that has none of the installed packages; built: the copy has a .venv."""
    root = tmp_path / "a clone"
    for name in ("scripts", "ddp_probe", "docs", "tests/jobs"):
        shutil.copytree(str(repo / name), str(root / name), ignore=shutil.ignore_patterns("__pycache__", "recorded"))

    def run(*words: str, built: bool) -> Any:
        python = root / ".venv" / "bin" / "python"
        if built:
            python.parent.mkdir(parents=True)
            python.write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable, encoding="utf-8")
            python.chmod(0o755)
        line = [sys.executable, "-S", str(root / words[0]), *words[1:]]
        return subprocess.run(line, env=clean_env(PYTHONPATH=None), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.mark.parametrize("name", _SCRIPTS)
def test_a_python_without_the_packages_is_told_what_to_run(newcomer: Callable[..., Any], name: str) -> None:
    """Without an environment one line says what is missing and which command builds it; exit code 2, no traceback."""
    done = newcomer("scripts/" + name, "--help", built=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("scripts/%s: " % name)
    assert "msgspec" in done.stderr
    assert "./scripts/test --quick" in done.stderr


@pytest.mark.parametrize("name", _SCRIPTS)
def test_a_script_finds_the_environment_by_itself(newcomer: Callable[..., Any], name: str) -> None:
    """Where .venv has been built, the script goes on in it, with the words that it was given."""
    done = newcomer("scripts/" + name, "--help", built=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert name in done.stdout.splitlines()[0]
    assert done.stdout.startswith("usage: ")


def test_the_scripts_look_for_what_the_package_requires(repo: Path) -> None:
    """What own_python looks for is what setup.cfg requires of every Python."""
    metadata = configparser.ConfigParser()
    metadata.read(str(repo / "setup.cfg"), encoding="utf-8")
    required = [line for line in metadata["options"]["install_requires"].split("\n") if line and ";" not in line]
    own = runpy.run_path(str(repo / "scripts" / "own_python.py"))
    assert sorted(own["PACKAGE"]) == sorted(re.split("[<>=]", line)[0] for line in required)
