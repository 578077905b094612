"""What decided, by value: the ranks of a real launch stand still, or one leaves by an exception, and the run holds their values."""

from pathlib import Path
from typing import Any, List

import pytest

from ddp_probe.reading.load_run import load
from ddp_probe.shared.schema import Site
from ddp_probe.standing.condition_values import differing, side_by_side, values_at

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "own_metric.py"
_DECIDED = "value 3.5, best 7.0 on rank 0; value 8.0, best 7.0 on rank 1"


def _values(root: Path) -> Any:
    (folder,) = {path.resolve().parent for path in root.glob("*/rank*.jsonl")}
    ranks = load([str(folder)]).ranks
    site = Site(str(_PROGRAM), 12, "keep_best")
    return {rank: values_at(process, site, ["value", "best"]) for rank, process in ranks.items()}


@pytest.mark.parametrize("words", [[], ["raise"]])
def test_the_values_of_the_condition_are_set_side_by_side(words: List[str], armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """Where the ranks stand, or where one raised, the values of the deciding condition are in the run."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2")
    assert torchrun(_PROGRAM, args=tuple(words), env=env, timeout=100).returncode != 0
    values = _values(tmp_path / "runs")
    assert values[1] == {"value": "8.0", "best": "7.0"}
    if not words:
        assert side_by_side(differing(values)) == _DECIDED


def test_off_writes_no_values(armed: Any, torchrun: Any, tmp_path: Path) -> None:
    """With DDP_PROBE_VALUES=off, no line of the run holds the values."""
    env = armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="2", DDP_PROBE_VALUES="off")
    assert torchrun(_PROGRAM, env=env, timeout=100).returncode != 0
    texts = [path.read_text() for path in (tmp_path / "runs").rglob("rank*.jsonl")]
    assert texts
    assert not any('"values":' in text for text in texts)
