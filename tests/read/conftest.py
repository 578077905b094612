"""Makes the files of runs by hand, as a probe would have written them.

event          event(name, **fields) -> str: one line; ts is 12:00:00 UTC plus `at` seconds, mono_ns the same on a clock of the host's own.
write_run      write_run(folder, {file name: [lines]}) -> the folder.
"""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

_NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture(scope="session")
def event() -> Callable[..., str]:
    """One line of a probe's file."""

    def make(name: str, at: float = 0.0, **fields: Any) -> str:
        stamp = (_NOON + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        known = {"event": name, "phase": "point", "ts": stamp, "mono_ns": int((1000 + at) * 1e9), "host": "node1", "pid": 100, "run": "r1"}
        return json.dumps({**known, **fields})

    return make


@pytest.fixture(scope="session")
def write_run() -> Callable[[Path, Dict[str, List[str]]], Path]:
    """A folder of files, each with the given lines."""

    def write(folder: Path, files: Dict[str, List[str]]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in files.items():
            (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return folder

    return write
