"""scripts/hostile_place leaves nothing behind, and what a killed run has left does not reach the next one."""

import os
import pwd
import signal
import subprocess
from pathlib import Path
from typing import Callable, Dict, List

import pytest

_SECONDS = 120


@pytest.fixture
def script(repo: Path) -> str:
    """The script, in a checkout that can be cloned."""
    if not (repo / ".git").exists():
        pytest.skip("this is not a clone")
    return str(repo / "scripts" / "hostile_place")


@pytest.fixture
def killed(script: str, clean_env: Callable[..., Dict[str, str]]) -> List[str]:
    """What the command of a run printed that was killed with SIGKILL in the middle: its user, and its folder."""
    if os.geteuid() != 0:
        pytest.skip("only root makes users")
    words = [script, "bash", "-c", "id -un; pwd; echo; exec sleep 600"]
    with subprocess.Popen(words, env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        lines = [started.stdout.readline().strip() for _ in range(3)]
        os.kill(started.pid, signal.SIGKILL)
        started.stdout.close()
    return lines


def test_what_a_killed_run_left_is_removed(killed: List[str], script: str, clean_env: Callable[..., Dict[str, str]]) -> None:
    """The next run ends the processes of the killed one, removes its user and its folder, has a user of its own, and fails if its command does."""
    user, place, _ = killed
    assert pwd.getpwnam(user).pw_name.startswith("ddp-probe-guest-")
    assert Path(place).is_dir()
    left = pwd.getpwnam(user).pw_uid
    done = _run(script, clean_env(), "id -un; exit 7")
    assert done.returncode == 7
    assert "Removing %s, the user of a run that was killed." % user in done.stderr
    assert done.stdout.startswith("ddp-probe-guest-")
    assert done.stdout.strip() != user
    for name in (user, done.stdout.strip()):
        with pytest.raises(KeyError):
            pwd.getpwnam(name)
    assert not Path(place).exists()
    assert [each for each in Path("/proc").glob("[0-9]*") if _owner(each) == left] == []


def test_without_a_user_the_folder_is_open(script: str, clean_env: Callable[..., Dict[str, str]]) -> None:
    """Who cannot make users is told so, and has a folder that others may enter."""
    if os.geteuid() == 0:
        pytest.skip("root makes users")
    done = _run(script, clean_env(), 'stat -c %a ~ "$TMPDIR"; exit 7')
    assert (done.returncode, done.stdout.split()) == (7, ["755", "755"]), done.stderr
    assert "No user of its own" in done.stderr


def _run(script: str, env: Dict[str, str], line: str) -> "subprocess.CompletedProcess[str]":
    words = [script, "bash", "-c", line]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)


def _owner(process: Path) -> int:
    try:
        return process.stat().st_uid
    except OSError:
        return -1
