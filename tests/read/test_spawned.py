"""Calls of a child that a library has spawned stand at the line of the job that started the children."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from ddp_probe.reading.load_run import load
from ddp_probe.shared import schema

STARTS = {"file": "/train/fit.py", "line": 49, "function": "main"}
LIBRARY = {"file": "/usr/lib/python3/dist-packages/trainer/loop.py", "line": 1, "function": "fit"}
OWN = {"file": "/train/model.py", "line": 7, "function": "build"}


def _write(file: Path, pid: int, events: List[Dict[str, Any]]) -> None:
    common = {"host": "node1", "pid": pid, "run": "r", "ts": "2026-11-22T06:00:00.000000Z", "schema": 1}
    file.write_text("".join(json.dumps({**common, "seq": seq, "mono_ns": seq, **event}) + "\n" for seq, event in enumerate(events)), encoding="utf-8")


def _run(folder: Path, groups: List[Dict[str, Any]], role: str, site: Optional[Dict[str, Any]]) -> List[Optional[Tuple[str, int]]]:
    """Write a launcher with these group events and two ranks; return where each rank made its wrap and its load."""
    start = {"event": "launcher.start", "phase": "point", "launcher": "spawn"}
    _write(folder / "launcher.node1.jsonl", 1, [start, *({"event": "launcher.group", **group} for group in groups)])
    for rank in (0, 1):
        events = [
            {"event": "process.start", "phase": "point", "rank": rank, "world_size": 2, "role": role},
            {"event": "ddp.init", "phase": "begin", "span": 1, "rank": rank, "site": site},
            {"event": "ddp.init", "phase": "end", "span": 1, "rank": rank},
            {"event": "checkpoint.load", "phase": "begin", "span": 2, "rank": rank, "site": OWN},
        ]
        _write(folder / ("rank%05d.node1.%d.jsonl" % (rank, 10 + rank)), 10 + rank, events)
    calls = [process.first(kind) for process in load([str(folder)]).processes for kind in (schema.Wrap, schema.Load)]
    return [None if call is None or call.site is None else (call.site.file, call.site.line) for call in calls]


_BEGIN: Dict[str, Any] = {"phase": "begin", "span": 1, "site": STARTS}
_END: Dict[str, Any] = {"phase": "end", "span": 1, "children": {"0": 10, "1": 11}}
_FAILED: Dict[str, Any] = {"phase": "error", "span": 1, "failure": {"type": "ProcessRaisedException", "message": ""}}
_LATER = [{"phase": "begin", "span": 2, "site": {**STARTS, "line": 60}}, {"phase": "end", "span": 2, "children": {"0": 20, "1": 21}}]
_AT_START, _AT_OWN = ("/train/fit.py", 49), ("/train/model.py", 7)


@pytest.mark.parametrize("site", [None, LIBRARY], ids=["no line", "a library's line"])
@pytest.mark.parametrize(
    ("groups", "role", "expected"),
    [
        ([_BEGIN, _END], "promoted", _AT_START),
        ([_BEGIN, _END, *_LATER], "promoted", _AT_START),
        ([_BEGIN, _FAILED], "promoted", _AT_START),
        ([_BEGIN, _FAILED, *_LATER], "promoted", None),  # Either of the two may have started them.
        ([{**_BEGIN, "site": None}, _END], "promoted", None),
        ([{**_BEGIN, "site": LIBRARY}, _END], "promoted", None),  # The whole program is installed.
        ([_BEGIN, _END], "rank", None),
    ],
    ids=["by pid", "by pid of two", "the only one", "either of two", "no line of the parent", "the parent is a library", "a rank of its own"],
)
def test_the_line_that_started_the_children(
    tmp_path: Path, groups: List[Dict[str, Any]], role: str, expected: Optional[Tuple[str, int]], site: Optional[Dict[str, Any]]
) -> None:
    """It stands in for a library's line or for none if it is certain, and never for a line of the job in the child."""
    as_it_was = None if site is None else (site["file"], site["line"])
    assert _run(tmp_path, groups, role, site) == [expected or as_it_was, _AT_OWN] * 2
