"""Ranks that go over the names of a loop in another order make the same calls at one line: the items of the loop show it."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines

BY_NAME = """\
def reduce(sums):
    for name, value in sums.items():
        dist.all_reduce(value)
"""
BY_HELPER = """\
def average(values):
    for number, name in enumerate(values):
        total = torch.tensor([values[name]])
        mean(total.to(device))


def mean(tensor):
    dist.all_reduce(tensor)
"""
OF_FILES = """\
def read(paths):
    for path in paths:
        loss = model(load(path))
        dist.all_reduce(loss)
"""
GATHERED = OF_FILES.replace("all_reduce(loss)", "all_gather(losses, loss)")
IN_PARTS = """\
def exchange(order):
    for part in order:
        dist.all_reduce(chunks[part])
"""


def _job(tmp_path: Path, source: str, names: Sequence[str], line: int = 3, op: str = "all_reduce", via: str = "") -> Diagnosis:
    """Judge ranks that ended well, each with its names in its order, twice."""
    file = tmp_path / "train.py"
    file.write_text(source, encoding="utf-8")
    os.utime(file, (500.0, 500.0))  # Before the run.
    events: List[Dict[str, Any]] = []
    for rank in range(len(names)):
        events.append({"event": "process.start", "rank": rank, "world_size": len(names), "role": "rank"})
        events.append({"event": "process.end", "rank": rank, "exit_code": 0})
    function = "mean" if via else source.partition("(")[0][len("def ") :]
    way = " via '%s:%s'" % (file, via) if via else ""
    calls = []
    for each in [*zip(*(own.split() for own in names))] * 2:
        for rank, item in enumerate(each):
            calls.append("ledger %d %s 4 float32 at '%s:%d:%s' item %s%s" % (rank, op, file, line, function, item, way))
    return judge(from_lines("\n".join([*map(json.dumps, events), *calls])))


def test_another_order_of_names_is_told_with_the_loop(tmp_path: Path) -> None:
    """Both orders are told, and the loop stands before the line that makes the calls, although all ranks ended with 0."""
    (finding,) = _job(tmp_path, BY_NAME, ["loss size rate", "size rate loss"]).findings
    assert finding.slug == "calls-out-of-step"
    assert finding.ranks == [0, 1]
    assert "go through 'for name, value in sums.items()' at %s:2 in reduce in different orders" % (tmp_path / "train.py") in finding.verdict
    assert "in collective number 1, all_reduce at" in finding.verdict
    assert "rank 0 takes 1, 2, 3, and rank 1 takes 2, 3, 1" in finding.verdict
    assert "6 calls have met for different items" in finding.verdict
    assert finding.evidence[0].site is not None
    assert finding.evidence[0].site.line == 2
    assert "line 2" in finding.remedy


def test_the_few_are_to_blame(tmp_path: Path) -> None:
    """Of four ranks, the one with an order of its own is named."""
    (finding,) = _job(tmp_path, BY_NAME, ["a b c", "a b c", "a c b", "a b c"]).findings
    assert finding.ranks == [2]
    assert "rank 2 takes 1, 3, 2" in finding.verdict


def test_the_loop_may_be_in_the_function_that_asks(tmp_path: Path) -> None:
    """A tensor made of what was looked up by the name belongs to it, if a helper makes the call as well."""
    (finding,) = _job(tmp_path, BY_HELPER, ["a b", "b a"], line=8, via="4:average").findings
    assert "'for number, name in enumerate(values)'" in finding.verdict


def test_the_same_order_is_clear(tmp_path: Path) -> None:
    """Ranks that go over the same names in one order have nothing to be told of."""
    assert _job(tmp_path, BY_NAME, ["a b c", "a b c"]).verdict == "clear"


@pytest.mark.parametrize("source", [BY_NAME, OF_FILES])
def test_ranks_with_names_of_their_own_are_clear(tmp_path: Path, source: str) -> None:
    """Files that are dealt out to the ranks, with one that two ranks have, show no order."""
    assert _job(tmp_path, source, ["f0 f2 f4", "f1 f3 f0"], line=3 if source is BY_NAME else 4).verdict == "clear"


def test_what_a_function_makes_of_a_name_leaves_it_open(tmp_path: Path) -> None:
    """A loss of each file may well be added up in an order of each rank's own: that is asked, and is no finding."""
    diagnosis = _job(tmp_path, OF_FILES, ["f0 f1 f2", "f1 f2 f0"], line=4)
    assert (diagnosis.verdict, diagnosis.findings) == ("undecided", [])
    assert "went over the names of a loop in different orders: at number 1 of the group" in diagnosis.undecided[0].because
    assert _job(tmp_path, GATHERED, ["f0 f1 f2", "f1 f2 f0"], line=4, op="all_gather").verdict == "clear"


def test_numbers_that_differ_everywhere_are_no_proof(tmp_path: Path) -> None:
    """A rank that begins with its own part is in a role; two parts that change places are not."""
    assert _job(tmp_path, IN_PARTS, ["0 1 2", "1 2 0"]).verdict == "clear"
    (finding,) = _job(tmp_path, IN_PARTS, ["0 1 2", "0 2 1"]).findings
    assert "rank 1 takes 1, 3, 2" in finding.verdict


def test_numbers_that_the_ranks_do_not_share_are_asked_about(tmp_path: Path) -> None:
    """Sums looked up by other numbers on each rank may be mixed, or its own part: the run is not clear."""
    diagnosis = _job(tmp_path, IN_PARTS, ["2 0", "4 5"])
    assert (diagnosis.verdict, diagnosis.findings) == ("undecided", [])
    assert "rank 0 was at 2 in 'for part in order' at" in diagnosis.undecided[0].because.lower()
    assert "and rank 1 at 4" in diagnosis.undecided[0].because
    computed = IN_PARTS.replace("chunks[part]", "loss_of(part)")
    assert _job(tmp_path, computed, ["2 0", "4 5"]).verdict == "clear"
    gathered = IN_PARTS.replace("all_reduce(", "all_gather(parts, ")
    assert _job(tmp_path, gathered, ["2 0", "4 5"], op="all_gather").verdict == "clear"


def test_numbers_may_agree_again_at_the_end(tmp_path: Path) -> None:
    """Two numbers that change places first are told, if a later one of the turn is at its place."""
    (finding,) = _job(tmp_path, IN_PARTS, ["0 8 3", "8 0 3"]).findings
    assert "rank 0 takes 1, 2, 3, and rank 1 takes 2, 1, 3" in finding.verdict
    assert _job(tmp_path, IN_PARTS, ["0 1 2 3", "1 0 3 2"]).verdict == "clear"


def test_without_the_source_the_order_is_asked_about(tmp_path: Path) -> None:
    """If nobody can read which tensor belongs to which name, the run is not clear, without a finding."""
    assert _job(tmp_path, "def reduce(): pass\n", ["a b", "b a"]).verdict == "undecided"
