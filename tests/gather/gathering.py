"""What tests of gather share: a run that is split by host, hosts that gather, and a report without its paths."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

HALF_SENDER = Path(__file__).resolve().parent / "programs" / "half_sender.py"
_RUN = re.compile(r"[^\s\"]*/(?:2\d{7}-\d{6}|other)-[0-9a-f-]+(?:\.gathered)?(?:/logs/[\w.-]+|/[\w.-]+\.fold)?|[^\s\"]*\.fold")


def split(whole: Path, root: Path, nodes: str, name: str = "") -> Path:
    """Copy the files of some of the nodes of a run into a folder for runs of their own; return that folder."""
    folder = root / (name or whole.name)
    folder.mkdir(parents=True)
    for file in whole.iterdir():
        if file.is_file() and any(".node%s." % node in file.name for node in nodes):
            shutil.copy2(file, folder)
    shutil.copytree(whole / "models", folder / "models")
    return root


def without_paths(report: str) -> Dict[str, Any]:
    """Return what report --json has printed, with one name for each path of the run."""
    found: Dict[str, Any] = json.loads(_RUN.sub("RUN", report))
    read = found["inventory"]
    read["folders"], read["files"] = bool(read["folders"]), sorted(read["files"])
    return found


class Gathers:
    """Starts gather as the ranks of a launch, by the variables that a launcher sets."""

    def __init__(self, clean_env: Callable[..., Dict[str, str]], world: int, port: int) -> None:
        self._clean_env, self._world, self._port = clean_env, world, port

    def env(self, rank: int, root: Path, **variables: str) -> Dict[str, str]:
        """Return the environment of a rank."""
        named = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(self._world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._port)}
        return self._clean_env(**{**named, "DDP_PROBE_DIR": str(root), "TMPDIR": str(root.parent), **variables})

    def start(self, rank: int, root: Path, *args: Any, program: "Path | None" = None) -> "subprocess.Popen[str]":
        """Start a rank whose host has its runs in this folder."""
        return start([program] if program else ["-m", "ddp_probe", "gather"], args, self.env(rank, root))


def start(program: List[Any], args: Any, env: Dict[str, str]) -> "subprocess.Popen[str]":
    """Start a process of gather."""
    command = [sys.executable, *map(str, program), *map(str, args)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def ended(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    """Wait for a process; return what it printed."""
    out, err = process.communicate(timeout=200)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def until(there: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait for a cause, as long as a process runs."""
    while not there():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def size(path: Path) -> int:
    """Return the size of a file."""
    return os.stat(str(path)).st_size
