"""What decided, by value: the ranks of a real launch stand still, or one leaves by an exception, and the run holds their values."""

from pathlib import Path
from typing import Any, List

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "own_metric.py"
_DECIDED = "if value < best: rank 0: value 3.5, best 7.0; rank 1: value 8.0, best 7.0"


def _evidence(root: Path) -> List[str]:
    (folder,) = {path.resolve().parent for path in root.glob("*/rank*.jsonl")}
    return [item.text for finding in judge(load([str(folder)])).findings for item in finding.evidence]


@pytest.mark.parametrize("words", [[], ["raise"]])
def test_the_values_of_the_condition_are_set_side_by_side(words: List[str], armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """Where the ranks stand, or where one raised, the report has the values of the condition that decided."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2")
    assert torchrun(_PROGRAM, args=tuple(words), env=env, timeout=100).returncode != 0
    assert _DECIDED in _evidence(tmp_path / "runs")


def test_off_writes_no_values(armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """With DDP_PROBE_VALUES=off, no line of the run holds the values."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2", DDP_PROBE_VALUES="off")
    assert torchrun(_PROGRAM, env=env, timeout=100).returncode != 0
    texts = [path.read_text() for path in (tmp_path / "runs").rglob("rank*.jsonl")]
    assert texts
    assert not any('"values":' in text for text in texts)
