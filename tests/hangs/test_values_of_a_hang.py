"""What decided, by value: the ranks of a real launch stand still, or one leaves by an exception, and the run holds their values."""

from pathlib import Path
from typing import Any

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "own_metric.py"
_DECIDED = "if value < best: rank 0: value 3.5, best 7.0; rank 1: value 8.0, best 7.0"
_WATCHED = "if value < best: unlike from the first time on: rank 0: value 3.5, best 7.0 (true); rank 1: value 8.0, best 7.0 (false)"


def _run_below(root: Path) -> Run:
    (folder,) = {path.resolve().parent for path in root.glob("*/rank*.jsonl")}
    return load([str(folder)])


def test_the_values_of_the_condition_are_set_side_by_side(armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """The report of ranks that waited in two calls has the values of the condition that decided."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2", DDP_PROBE_VALUES="all")
    assert torchrun(_PROGRAM, env=env, timeout=300).returncode != 0
    findings = judge(_run_below(tmp_path / "runs")).findings
    assert _DECIDED in [item.text for finding in findings for item in finding.evidence]


def test_a_watched_line_tells_from_which_time_on_the_ranks_differ(armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """With DDP_PROBE_WATCH the report says what the condition was on each rank when the line was reached, in a function of the launched file."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2", DDP_PROBE_WATCH="own_metric.py:13")
    assert torchrun(_PROGRAM, env=env, timeout=300).returncode != 0
    findings = judge(_run_below(tmp_path / "runs")).findings
    assert _WATCHED in [item.text for finding in findings for item in finding.evidence]


def test_an_exception_leaves_the_values_of_the_line_that_raised(armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """The last line of a rank that an exception ended has the values of the frame that raised."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2")
    assert torchrun(_PROGRAM, args=("raise",), env=env, timeout=300).returncode != 0
    ended = _run_below(tmp_path / "runs").ranks[1].ended
    assert ended is not None
    assert ended.failure is not None
    assert ended.failure.values[-1].values == {"rank": "1", "best": "7.0", "value": "8.0"}


def test_off_writes_no_values(armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """With DDP_PROBE_VALUES=off, no line of the run holds the values."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2", DDP_PROBE_VALUES="off")
    assert torchrun(_PROGRAM, env=env, timeout=300).returncode != 0
    texts = [path.read_text() for path in (tmp_path / "runs").rglob("rank*.jsonl")]
    assert texts
    assert not any('"values":' in text for text in texts)
