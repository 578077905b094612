"""What the tests of the run over time share: recorded jobs of both stacks, each read and judged once."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Callable

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines, load

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


@lru_cache(maxsize=None)
def _judged(job: str, stack: str) -> Diagnosis:
    return judge(load([str(RECORDED / stack / job)]))


@pytest.fixture(scope="session")
def recorded() -> Callable[..., Diagnosis]:
    """Take the name of a recorded job, and its stack, and return its diagnosis."""
    return lambda job, stack="new": _judged(job, stack)


@pytest.fixture(scope="session")
def told() -> Callable[[str], Diagnosis]:
    """Take a short log and return its diagnosis."""
    return lambda log: judge(from_lines(log))


@pytest.fixture(scope="session")
def hostile(told: Callable[[str], Diagnosis]) -> Diagnosis:
    """Return the diagnosis of a log whose names and paths try to end a string, a script or a line, and to turn the direction of the text."""
    text = 'a"}],\\ </script><script>alert(1)</script>\n\x00\x1b[2J\u202e\u2028 模型 \U0001f3d6'
    site = {"file": "/train/%s.py" % text, "line": 3, "function": text}
    failure = {"type": "x.%s" % text, "message": text, "raised_at": site, "frames": [site]}
    events = [
        {"event": "process.start", "rank": 0, "host": text, "pid": 7, "world_size": 1, "run": text, "launcher": text},
        {"event": "checkpoint.load", "phase": "begin", "span": 1, "site": site, "file": {"path": text}},
        {"event": "checkpoint.load", "phase": "error", "span": 1, "failure": failure},
        {"event": "hang.suspected", "since": 1e300, "operation": text, "during": text, "number": 9},
        {"event": "checkpoint.save", "phase": "end", "seconds": 1e300, "path": text},
        {"event": "process.end", "uncaught": True, "failure": failure},
    ]
    common = {"rank": 0, "host": text, "pid": 7}
    return told("\n".join(json.dumps({**event, **common}) for event in events))
