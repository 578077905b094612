"""The two commands of the README say what they need before they do anything."""

import subprocess
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


@pytest.mark.parametrize(("arguments", "version"), [([], "3.8"), (["--legacy"], "3.8"), (["--clients"], "3.11")])
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
