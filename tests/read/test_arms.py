"""Which lines of a job belong to one decision, by its source."""

import os
from pathlib import Path
from typing import Tuple

import pytest

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.arms import Arms

ARMS = {
    "the arms of an if": "if seen:\n    call()  # 1\nelse:\n    call()  # 2\n",
    "the arms of an elif": "if seen:\n    call()  # 1\nelif more:\n    pass\nelse:\n    call()  # 2\n",
    "an early return": "if seen:\n    call()  # 1\n    return\ncall()  # 2\n",
    "a continue": "for batch in data:\n    if batch is None:\n        call()  # 1\n        continue\n    call()  # 2\n",
    "a body and its handler": "try:\n    call()  # 1\nexcept ValueError:\n    call()  # 2\n",
    "two ifs on the rank": "if rank != 0:\n    call()  # 1\nload()\nif rank == 0:\n    call()  # 2\n",
    "ranks in turn": "for _ in range(rank):\n    call()  # 1\nfor _ in range(world - rank):\n    call()  # 2\n",
    "functions of two arms": (
        "def mine():\n    call()  # 1\ndef theirs():\n    call()  # 2\ndef main():\n    if own:\n        mine()\n    else:\n        theirs()\n"
    ),
}
ON_ONE_WAY = {
    "one after the other": "call()  # 1\ncall()  # 2\n",
    "an if before": "if rank == 0:\n    call()  # 1\ncall()  # 2\n",
    "a body and what always follows": "try:\n    call()  # 1\nfinally:\n    call()  # 2\n",
    "a loop and what follows": "for batch in data:\n    call()  # 1\ncall()  # 2\n",
    "a loop and its else": "for batch in data:\n    call()  # 1\nelse:\n    call()  # 2\n",
    "functions called in both orders": (
        "def loss():\n    call()  # 1\ndef score():\n    call()  # 2\ndef main():\n"
        "    if first:\n        loss()\n        score()\n    else:\n        score()\n        loss()\n"
    ),
}
PASSED_BY = {
    "an if on the rank": ("if rank == 0:\n    call()  # 1\ncall()  # 2\n", 2, True),
    "an if in an if": ("if best:\n    if rank == 0:\n        call()  # 1\nload()\ncall()  # 2\n", 2, False),
    "a function with an if": ("def save():\n    if rank == 0:\n        call()  # 1\ndef main():\n    save()\n    call()  # 2\n", 3, True),
}
NOT_PASSED_BY = {
    "an early return": "if rank == 0:\n    call()  # 1\n    return\ncall()  # 2\n",
    "another if after it": "if rank == 0:\n    call()  # 1\nif best:\n    call()  # 2\n",
    "a loop after it, which may have no turn": "if rank == 0:\n    call()  # 1\nfor batch in data:\n    call()  # 2\n",
    "no if": "call()  # 1\ncall()  # 2\n",
    "the second line before the first": "call()  # 2\nif rank == 0:\n    call()  # 1\n",
}


def _sites(folder: Path, source: str) -> Tuple[LedgerSite, LedgerSite]:
    """Write a job with this source in a function, and return the lines that are marked."""
    indented = "".join("    %s\n" % line for line in source.splitlines())
    file = folder / "train.py"
    file.write_text("def train(rank):\n" + indented, encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    first, second = ([number for number, line in enumerate(lines, 1) if line.endswith("# %s" % mark)] for mark in "12")
    return LedgerSite(str(file), first[0], "train"), LedgerSite(str(file), second[0], "train")


@pytest.mark.parametrize("source", ARMS.values(), ids=ARMS)
def test_arms(tmp_path: Path, source: str) -> None:
    """Of two lines that no rank passes on one way, each belongs where the other stands."""
    one, other = _sites(tmp_path, source)
    arms = Arms(os.path.getmtime(one.file))
    assert arms.know("call", one, other)
    assert arms.are_arms(one, other)
    assert arms.are_arms(other, one)


@pytest.mark.parametrize("source", ON_ONE_WAY.values(), ids=ON_ONE_WAY)
def test_on_one_way(tmp_path: Path, source: str) -> None:
    """Two lines that one rank passes one after the other belong to two calls."""
    one, other = _sites(tmp_path, source)
    arms = Arms(os.path.getmtime(one.file))
    assert not arms.are_arms(one, other)
    assert not arms.are_arms(other, one)


@pytest.mark.parametrize(("source", "line", "on_rank"), PASSED_BY.values(), ids=PASSED_BY)
def test_passed_by(tmp_path: Path, source: str, line: int, on_rank: bool) -> None:
    """A call in an `if` before one that all ranks make is named with the line of the `if`."""
    one, other = _sites(tmp_path, source)
    decision = Arms(os.path.getmtime(one.file)).passed_by(one, other)
    assert decision is not None
    assert (decision.line, decision.on_rank) == (line, on_rank)


@pytest.mark.parametrize("source", NOT_PASSED_BY.values(), ids=NOT_PASSED_BY)
def test_not_passed_by(tmp_path: Path, source: str) -> None:
    """If a rank that makes the first call need not come to the second one, nothing is said of an `if`."""
    one, other = _sites(tmp_path, source)
    assert Arms(os.path.getmtime(one.file)).passed_by(one, other) is None


def test_source_that_has_changed(tmp_path: Path) -> None:
    """Source that is newer than the run is believed as long as the lines still show the call."""
    one, other = _sites(tmp_path, ARMS["the arms of an if"])
    arms = Arms(os.path.getmtime(one.file) - 60)
    assert arms.know("call", one, other)
    assert not arms.know("call", one, other._replace(line=other.line - 1))
    assert not arms.know("barrier", one, other)


def test_no_source(tmp_path: Path) -> None:
    """Without the source nothing is known of its lines."""
    site = LedgerSite(str(tmp_path / "gone.py"), 3, "train")
    arms = Arms(0.0)
    assert not arms.know("call", site, site)
    assert not arms.are_arms(site, site._replace(line=9))
    assert arms.passed_by(site, site._replace(line=9)) is None
