"""The processes that a test has started, found by the folder in which they run: the ranks of newer launchers have sessions of their own."""

import os
import signal
from pathlib import Path
from typing import List


def processes_in(folder: Path) -> List[int]:
    """Return the processes whose working directory is in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(str(entry / "cwd")).startswith(str(folder)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_in(folder: Path) -> None:
    """Kill the processes whose working directory is in a folder."""
    for pid in processes_in(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def run_in(root: Path) -> str:
    """Return the folder of the only run below the folder for runs."""
    (found,) = (path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    return str(found)
