"""If stdout cannot be written, each command says so in one line and ends with 2: neither a verdict nor a fault of ours."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List

import pytest

_RUN = str(Path(__file__).resolve().parents[1] / "recorded" / "new" / "03_submodule_left_behind")
_COMMANDS = [
    ["report", _RUN],
    ["report", _RUN, "--json"],
    ["explain", "DDP102"],
    ["logs", _RUN],
    ["logs", _RUN, "--raw"],
    ["watch", _RUN, "--once"],
    ["status"],
    ["doctor", "--static"],
    ["schema", "events"],
    ["completion", "bash"],
    ["help"],
]


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("shell", "why"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")], ids=["full", "closed"])
def test_it_is_said_in_one_line(words: List[str], shell: str, why: str, clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """A full disk and a closed descriptor are told by name, on stderr, with exit code 2."""
    if shell.endswith("full") and not os.path.exists("/dev/full"):
        pytest.skip("There is no /dev/full here.")
    command = ["sh", "-c", '"$@" ' + shell, "sh", sys.executable, "-m", "ddp_probe", *words]
    done = subprocess.run(command, env=clean_env(), cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "ddp_probe: stdout cannot be written: %s.\n" % why)


@pytest.mark.parametrize("shell", ["> /dev/full", ">&-"], ids=["full", "closed"])
def test_a_command_that_prints_nothing_does_its_work(shell: str, clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """`run` leaves stdout to the program that it starts."""
    command = ["sh", "-c", '"$@" ' + shell, "sh", sys.executable, "-m", "ddp_probe", "run", "--", "sh", "-c", "touch made; exit 7"]
    done = subprocess.run(command, env=clean_env(), cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (7, "")
    assert (tmp_path / "made").exists()


def test_what_the_locale_cannot_encode_is_escaped(clean_env: Callable[..., Dict[str, str]]) -> None:
    """A character for which stdout has no bytes is printed as an escape, whatever the command."""
    code = "from ddp_probe.cli import _stdout; _stdout.guard(); print('\\xe9\\udcff')"
    env = clean_env(PYTHONIOENCODING="ascii")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (b"\\xe9\\udcff\n", b"")
