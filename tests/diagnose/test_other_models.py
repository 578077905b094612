"""Ranks that pass different models forward in one step, from one line: what DDP exchanges is mixed."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines

SOURCE = """\
def step(name, batch):
    loss = models[name](batch)
    loss.backward()
"""


def _judge(tmp_path: Path, ranks: int, lines: List[str]) -> Diagnosis:
    """Judge ranks that ended well."""
    file = tmp_path / "train.py"
    file.write_text(SOURCE, encoding="utf-8")
    os.utime(file, (500.0, 500.0))  # Before the run.
    events: List[Dict[str, Any]] = []
    for rank in range(ranks):
        events.append({"event": "process.start", "rank": rank, "world_size": ranks, "role": "rank"})
        events.append({"event": "process.end", "rank": rank, "exit_code": 0})
    placed = [line % {"file": file} for line in lines]
    return judge(from_lines("\n".join([*map(json.dumps, events), *placed])))


def _step(rank: int, model: int, words: str = "buffers") -> List[str]:
    forward = "ledger %d forward at '%%(file)s:2:step' via '%%(file)s:2:step' model %d %s"
    backward = "ledger %d backward at '%%(file)s:3:step' via '%%(file)s:3:step'"
    return [forward % (rank, model, words), backward % rank]


def _turns(*models: str, words: str = "buffers") -> List[str]:
    """Return the steps of each rank, whose models are written as digits."""
    lines: List[str] = []
    for rank, own in enumerate(models):
        for model in own:
            lines += _step(rank, int(model), words)
    return lines


def test_another_model_in_the_same_step_is_told(tmp_path: Path) -> None:
    """Both are at one line, and the model that another one has met before shows it."""
    (finding,) = _judge(tmp_path, 2, _turns("121211", "121222")).findings
    assert finding.slug == "ranks-decide-differently"
    assert finding.ranks == [0, 1]
    where = "%s:2" % (tmp_path / "train.py")
    assert "passed different models forward after DDP's forward number 4 at %s" % where in finding.verdict
    assert "rank 0 its model 1 in DDP's forward number 5" in finding.verdict
    assert "rank 1 its model 2 in" in finding.verdict
    assert "broadcast the decision" in finding.remedy


def test_the_few_are_to_blame(tmp_path: Path) -> None:
    """Of three ranks, the one with another model is named."""
    (finding,) = _judge(tmp_path, 3, _turns("1212", "1212", "1211")).findings
    assert finding.ranks == [2]


def test_gradients_of_different_models_are_told(tmp_path: Path) -> None:
    """A model without buffers meets the others in its gradients alone."""
    (finding,) = _judge(tmp_path, 2, _turns("1211", "1212", words="")).findings
    assert "passed different models forward after DDP's forward number 3" in finding.verdict


def test_models_may_have_other_numbers_on_each_rank(tmp_path: Path) -> None:
    """Each rank counts its models as it comes to them: only one that has met another before tells."""
    assert _judge(tmp_path, 2, _turns("1212", "2121")).verdict == "clear"


def test_a_model_of_one_rank_shifts_nothing(tmp_path: Path) -> None:
    """What is trained on one rank alone has no number, and its backward pass is no step of the others."""
    alone = "ledger 0 %s at '%%(file)s:%d:step' via '%%(file)s:%d:step'"
    lines = [*_turns("12", "12"), alone % ("forward", 2, 2), alone % ("backward", 3, 3), *_turns("12", "12")]
    assert not _judge(tmp_path, 2, lines).findings


def test_passes_that_meet_nobody_are_no_matter(tmp_path: Path) -> None:
    """Held back gradients are not exchanged, nor are those of several models in a step told apart."""
    both = _turns("12", "12")
    assert _judge(tmp_path, 2, [*both, *_turns("1", "2", words="held"), *both]).verdict == "clear"
