"""Where a rank left by sys.exit, the report names the line of the job that called it; on written events."""

import json
from typing import Any

from ddp_probe.diagnose import judge
from ddp_probe.read.load import from_lines

_SITE = {"file": "/train/train.py", "line": 31, "function": "main"}


def _line(name: str, rank: int, **fields: Any) -> str:
    return json.dumps({"event": name, "rank": rank, "pid": 100 + rank, **fields})


def _start(rank: int) -> str:
    return _line("process.start", rank, world_size=2, role="rank", launcher="torchrun")


def test_an_exit_code_has_its_line() -> None:
    """An exit code without an exception is undecided, and the reason names the line that called sys.exit."""
    good = [_start(0), _line("process.end", 0, exit_code=0)]
    answer = judge(from_lines("\n".join([*good, _start(1), _line("process.end", 1, exit_code=3, site=_SITE)])))
    assert answer.verdict == "undecided"
    assert "exit code 3 without an exception that the probe saw, by the exit call at /train/train.py:31" in answer.undecided[0].because


def test_who_left_early_has_its_line() -> None:
    """A rank that left while another one needed it is named with its exit code and the line that called sys.exit."""
    joined = [_line("dist.init_process_group", rank, phase=phase, span=1, backend="gloo") for rank in (0, 1) for phase in ("begin", "end")]
    gone = {"type": "RuntimeError", "message": "Connection closed by peer"}
    ends = [_line("process.end", 1, exit_code=1, site=_SITE), _line("process.end", 0, exit_code=1, uncaught=True, failure=gone)]
    answer = judge(from_lines("\n".join([_start(0), _start(1), *joined, *ends])))
    assert [finding.slug for finding in answer.findings] == ["left-early"]
    assert "(exit code 1, by the exit call at /train/train.py:31)" in answer.findings[0].verdict
