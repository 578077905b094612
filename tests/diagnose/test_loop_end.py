"""A rank that has left the loop in which another still is has had fewer batches; that is said only if the source leaves nothing else."""

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.reading.load_run import from_lines

PLAIN = """
def main():
    for epoch in range(3):
        for batch in loader:
            step(batch)
        barrier()
"""
UNPROVED: Dict[str, str] = {
    "the loop may be left": PLAIN.replace("step(batch)", "step(batch)\n            if enough: break").replace("        barrier", "        barrier"),
    "a pass may be cut short": PLAIN.replace("step(batch)", "step(batch)\n            if bad: continue"),
    "the function may be left": PLAIN.replace("step(batch)", "step(batch)\n            if bad: return"),
    "the step may be skipped": PLAIN.replace("step(batch)", "if good:\n                step(batch)"),
    "the loop has no end of its own": PLAIN.replace("for batch in loader", "while more()"),
    "the call may be skipped": "\ndef main():\n    if first:\n        for batch in loader:\n            step(batch)\n    else:\n        barrier()\n",
    "both are in the loop": PLAIN.replace("        barrier()", "            barrier()"),
    "the source is another one": "",
}


def _line(source: str, text: str) -> int:
    return next((number for number, line in enumerate(source.splitlines(), 1) if text in line), 99)


def _suspected(rank: int, frames: List[Any], at: float = 1070.0) -> str:
    stack = [{"file": file, "line": line, "function": function} for file, line, function in frames]
    when = datetime.fromtimestamp(at, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({"event": "hang.suspected", "rank": rank, "ts": when, "threads": [{"main": True, "frames": stack}]})


def _judged(path: Path, source: str, at: float = 1070.0, passes: int = 3) -> Finding:
    path.write_text(source, encoding="utf-8")
    train = str(path)
    inner = [(train, _line(source, "step(batch)"), "main"), ("/lib/step.py", 7, "step")]
    log = [
        _suspected(0, inner, at),
        _suspected(1, [(train, _line(source, "barrier()"), "main")], at),
        "ledger 0-1 backward at /lib/step.py:7 x3",
        *["ledger 1 backward at /lib/step.py:7"] * (passes - 3),
        "ledger 0 backward at /lib/step.py:7 open",
        "ledger 1 barrier at '%s:%d' open" % (train, _line(source, "barrier()")),
    ]
    (finding,) = judge(from_lines("\n".join(log))).findings
    return finding


def test_who_has_left_the_loop_had_fewer_batches(tmp_path: Path) -> None:
    """The rank behind the loop is named with the loop's line and the number of its passes; what both sides wait in stays in the sentence."""
    path = tmp_path / "train.py"
    finding = _judged(path, PLAIN)
    assert (finding.cause, finding.ranks, finding.confidence) == ("uneven_batches", [1], "medium")
    assert "The loop at %s:4 has ended on rank 1, after 3 backward passes; rank 0 is still in it." % path in finding.verdict
    assert "%s:6" % path in finding.verdict
    assert "/lib/step.py:7" in finding.verdict


@pytest.mark.parametrize("name", list(UNPROVED))
def test_what_may_be_otherwise_is_not_said(tmp_path: Path, name: str) -> None:
    """If the loop may end for another reason, or not each pass comes by the step, both ranks are named and neither is called wrong."""
    finding = _judged(tmp_path / "train.py", UNPROVED[name])
    assert (finding.cause, finding.ranks) == ("rank_divergent_control_flow", [0, 1])
    assert "loop" not in finding.verdict


@pytest.mark.parametrize("changed", [{"at": 3.0}, {"passes": 4}])
def test_an_old_stack_or_as_many_passes_tell_nothing(tmp_path: Path, changed: Dict[str, Any]) -> None:
    """After a stack from before the ledger moved for the last time, or equal numbers of backward passes, no loop is spoken of."""
    finding = _judged(tmp_path / "train.py", PLAIN, **changed)
    assert finding.cause == "rank_divergent_control_flow"
    assert "loop" not in finding.verdict
