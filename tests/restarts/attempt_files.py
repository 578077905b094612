"""Writes what an attempt leaves in DDP_PROBE_DIR: files of a launch, with the events that a story needs."""

import json
import os
import time
from pathlib import Path
from typing import Any, Dict, Sequence

NOON = 1_790_000_000.0
"""When the first attempt of a story begins, in seconds since 1970."""
LASTS = 60
"""Seconds from the first line of a rank to its last."""
LINE = {"file": "/train/train.py", "line": 31, "function": "main"}
BAD = {"type": "OSError", "message": "[Errno 5] Input/output error", "frames": [LINE]}
WRONG = {"type": "ValueError", "message": "loss is nan", "frames": [LINE]}
FULL = {"type": "OSError", "message": "[Errno 28] No space left on device: '/out/last.pth'", "frames": [LINE]}
_ECC = "CUDA error: uncorrectable ECC error encountered"
BROKEN = {"type": "RuntimeError", "message": _ECC, "frames": [LINE]}
COMMAND = ("torchrun", "--nproc_per_node=2", "train.py")


class Launch:
    """One launch of two ranks, which the tests describe step by step."""

    def __init__(self, root: Path, began: float, hosts: Sequence[str] = ("node1", "node1")) -> None:
        self.folder = root / ("run-%d" % (began - NOON))
        self.folder.mkdir(parents=True)
        self.began, self.hosts = began, hosts

    def rank(
        self,
        rank: int,
        *events: Dict[str, Any],
        failure: "Dict[str, Any] | None" = None,
        command: Sequence[str] = COMMAND,
        generation: int = 0,
        **variables: str,
    ) -> "Launch":
        """Write the file of one rank: its start, some events a second apart, and its end."""
        host, pid = self.hosts[rank], 1000 + 10 * generation + rank
        environment = {"TORCHELASTIC_RESTART_COUNT": str(generation), "MASTER_PORT": "29500", **variables}
        start = {"event": "process.start", "role": "rank", "argv": list(command), "cwd": "/train"}
        end: Dict[str, Any] = {"event": "process.end"}
        if failure:
            end.update(uncaught=True, failure=failure)
        whole = [{**start, "environment": environment}, *events, {"exit_code": 1 if failure else 0, **end}]
        seconds = [*range(len(whole) - 1), LASTS]
        lines = []
        for since, event in zip(seconds, whole):
            second = since + 100 * generation
            clock = {"ts": _stamp(self.began + second), "mono_ns": (second + 1) * 10**9, "phase": "point"}
            who = {"rank": rank, "local_rank": 0, "world_size": 2, "host": host, "pid": pid}
            lines.append(json.dumps({**clock, **who, "run": self.folder.name, **event}))
        path = self.folder / ("rank%05d.%s.%d.jsonl" % (rank, host, pid))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written = self.began + 100 * generation + LASTS
        os.utime(str(path), (written, written))
        return self


def _stamp(when: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when)) + ".000000Z"


def saved(path: str, number: int = 1) -> "tuple[Dict[str, Any], Dict[str, Any]]":
    """Return the two events of a save."""
    begin = {"event": "checkpoint.save", "phase": "begin", "span": number, "path": path}
    return begin, {"event": "checkpoint.save", "phase": "end", "span": number, "size": 9}


def loaded(path: str, number: int = 50) -> "tuple[Dict[str, Any], Dict[str, Any]]":
    """Return the two events of a load."""
    file = {"path": path, "exists": True}
    begin = {"event": "checkpoint.load", "phase": "begin", "span": number, "file": file}
    return begin, {"event": "checkpoint.load", "phase": "end", "span": number}
