"""What tests of gather share: a run that is split by host, hosts that gather, a rank 0 in this process, and a report without its paths."""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

from ddp_probe.moving.gather.hub import GatherHub
from ddp_probe.moving.gather.keep import Keep
from ddp_probe.moving.gather.messages import (
    VERSION,
    Begin,
    GatherLine,
    Have,
    Hello,
    Holds,
    Leave,
    Offer,
    RunOnHost,
    Sent,
    Wanted,
)
from ddp_probe.shared import meeting
from ddp_probe.shared.meeting import MeetingPlace

SECONDS = 200.0
TOKEN = "5" * 64
LOG = "rank00001.b.1.jsonl"
_ONE_RUN = RunOnHost("run", [0], [], 1, 0.0)
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


class Rank0:
    """A hub of three ranks in this process; tests are the hosts."""

    def __init__(self, folder: Path) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.hub = GatherHub(listening, MeetingPlace(0, 3, "127.0.0.1", listening.getsockname()[1], "job", TOKEN), SECONDS, logs=True, most=1000)
        self._address = self.address = listening.getsockname()
        self.hub.open()
        self._folder = folder

    def line(self) -> GatherLine:
        """Connect to it."""
        return GatherLine(meeting.entered(*self._address, TOKEN, SECONDS), SECONDS)

    def hello(self, rank: int, **other: Any) -> GatherLine:
        """Connect as a rank; return the connection."""
        line = self.line()
        given = {"gather": VERSION, "world": 3, "run": "job", "token": self.hub.token, "host": "host%d" % rank, "leads": True, **other}
        line.say(Hello(rank=rank, **given))
        return line

    def take(self) -> Keep:
        """Take what the hosts bring, until all three have come to their end; return the folder."""
        keep = Keep(str(self._folder), "run")
        self.thread = threading.Thread(target=self.hub.take, args=(_ONE_RUN, keep, lambda *_: None), daemon=True)
        self.thread.start()
        return keep


def brings(rank0: Rank0, logs: Sequence[str] = (LOG,)) -> GatherLine:
    """Connect as rank 1, which holds these logs; return the connection once it is to send."""
    line = rank0.hello(1)
    line.wait(Wanted)
    line.say(Holds(list(logs)))
    line.wait(Leave)
    return line


def offer(line: GatherLine, name: str, data: bytes, size: Optional[int] = None, sha256: str = "") -> Have:
    """Offer a file, and send it if it is wanted; return the answer."""
    line.say(Offer(name, len(data) if size is None else size))
    have = line.wait(Have)
    if not have.not_wanted:
        line.say(Begin(0))
        line.send_piece(data)
        line.send_piece(b"")
        line.say(Sent(sha256 or hashlib.sha256(data).hexdigest()))
    return have


def lacking(rank0: Rank0) -> List[str]:
    """Wait for the end; return what rank 0 says of rank 1."""
    rank0.thread.join(SECONDS)
    return [sentence for sentence in rank0.hub.lacking() if "(rank 1)" in sentence]
