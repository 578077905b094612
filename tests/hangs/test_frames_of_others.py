"""The watcher's look at the frames of other threads, while they come and go."""

from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).parent / "programs" / "frames_come_and_go.py"


def test_a_look_at_frames_that_come_and_go_harms_nobody(run_python: Any, clean_env: Any, tmp_path: Path) -> None:
    """If a collection would let the main thread go on in the middle of a look, the look finds frames alone, and the collector stays as it was."""
    done = run_python([str(_PROGRAM), "8"], env=clean_env(), cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (0, "True [] []\n"), done.stderr[-2000:]
