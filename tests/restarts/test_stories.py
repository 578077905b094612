"""The advice for jobs that were launched again, against what is true of them; README.md has the score."""

import ctypes
import os
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ports import free_port
from restarts.stories import is_told, told, truths

_NEW_UTS = 0x04000000


def _has_hosts() -> bool:
    """Tell whether a process may have a host name of its own, asked in a child: the answer would stay."""
    child = os.fork()
    if not child:
        os._exit(bool(ctypes.CDLL(None).unshare(_NEW_UTS)))
    return os.waitpid(child, 0)[1] == 0


HOSTS = _has_hosts()


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("story", truths(), ids=lambda story: story["name"].replace(" ", "-"))
def test_a_story_is_told(story: Dict[str, Any], tmp_path: Path, armed: Callable[..., Dict[str, str]]) -> None:
    """The report of the last attempt says whether a restart helps, without which host, from which file."""
    if any("hosts" in attempt for attempt in story["attempts"]) and not HOSTS:
        pytest.skip("This user may not give a process a host name of its own.")
    restart = told(story, tmp_path, armed, free_port())
    assert is_told(story, restart), restart
