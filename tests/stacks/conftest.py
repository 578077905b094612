"""Runs whose logs hold stacks: log(rank, *lines), and the lines for it."""

import json
import os
import platform
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import pytest

Frames = Sequence[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run."""
    path = tmp_path / "runs" / "run-1"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def event() -> Callable[..., Dict[str, Any]]:
    """Describe an event with the main thread's frames, each FILE:LINE:FUNCTION, and other threads by name."""

    def make(name: str, frames: Frames, second: int = 5, others: Sequence[str] = (), **fields: Any) -> Dict[str, Any]:
        threads: List[Dict[str, Any]] = [{"name": "MainThread", "main": True, "frames": _frames(frames)}]
        threads += [{"name": other, "frames": _frames(["/usr/lib/python3.11/threading.py:9:wait"])} for other in others]
        return {"event": name, "phase": "point", "ts": "2026-11-22T05:00:%02d.000000Z" % second, "threads": threads, **fields}

    return make


def _frames(frames: Frames) -> List[Dict[str, Any]]:
    parts = [frame.split(":") for frame in frames]
    return [{"file": file, "line": int(line), "function": function} for file, line, function in parts]


@pytest.fixture
def log(folder: Path) -> Callable[..., Path]:
    """Write the log of a rank; by default its process is gone."""

    def make(rank: int, *events: Dict[str, Any], pid: int = 0, end: bool = False) -> Path:
        path = folder / ("rank%05d.node1.%d.jsonl" % (rank, pid or rank + 1))
        start = {"event": "process.start", "phase": "point", "pid": pid or os.getpid(), "host": platform.node(), "born": _born(pid) if pid else 1}
        written = [start, *events, *([{"event": "process.end", "phase": "point", "exit_code": 0}] if end else [])]
        path.write_text("".join(json.dumps({**one, "rank": rank}, separators=(",", ":")) + "\n" for one in written), encoding="utf-8")
        return path

    return make


def _born(pid: int) -> int:
    return int(Path("/proc/%d/stat" % pid).read_text(encoding="utf-8").rpartition(")")[2].split()[19])
