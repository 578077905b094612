"""Ranks that all end with 0 are clear only if their ledgers agree: a failure that the job caught and went on from leaves its traces there."""

import json
import random
import shutil
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest
from at_home import at_home
from registry import JOBS, label

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.shared.ledger_schema import ABOUT_GROUPS, OPERATIONS

_RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_COLLECTIVES = {one.name for one in OPERATIONS if one.code < ABOUT_GROUPS}
_HEALTHY = [(stack, label(job)) for job in JOBS for stack in job.stacks if job.cause is None]
_EACH = [(stack, name) for stack, name in _HEALTHY if len(list((_RECORDED / stack / name).glob("*.ledger.txt"))) > 1]


def _judged(ledgers: str, ranks: Sequence[int] = (0, 1)) -> Diagnosis:
    events: List[Dict[str, Any]] = [{"event": "process.start", "rank": rank, "world_size": len(ranks), "role": "rank"} for rank in ranks]
    events += [{"event": "process.end", "rank": rank, "exit_code": 0} for rank in ranks]
    lines = ["ledger %s" % line.strip() for line in ledgers.strip().splitlines()]
    return judge(from_lines("\n".join([*map(json.dumps, events), *lines])))


_STEPS = "0-1 init_process_group at train.py:5\n0-1 forward at train.py:9 x10\n0-1 backward at train.py:10 x10\n"
_AGREED = {
    "the same calls": "0-1 all_reduce 16 float32 at train.py:12 x40\n0-1 optimizer at train.py:13 x10",
    "a call that raised everywhere, and another way": (
        "0-1 all_gather_into_tensor 16 float32 at train.py:12 raised\n0-1 all_gather 16 float32 at train.py:14"
    ),
    "a group of rank 0 alone": "0 all_reduce 16 float32 of 0 at train.py:12 x7\n0-1 barrier at train.py:14",
    "evaluation in a group of its own": "0 barrier of 0 at val.py:3 x9\n0 forward at val.py:4 x20\n0-1 barrier at train.py:14",
    "asynchronous work that nobody waits for": "0-1 all_reduce 16 float32 at train.py:12 async open\n0-1 barrier at train.py:14",
    "uneven inputs, for which the others stand in": (
        "0 all_reduce 1 int64 at train.py:9 x4\n1 all_reduce 1 int64 at train.py:8 x4\n0 optimizer at train.py:13 x10\n1 optimizer at train.py:13 x7"
    ),
    "optimizers on one rank alone": "0 optimizer at train.py:13 x10\n0-1 barrier at train.py:14",
    "a pipeline": "0 send 16 float32 to 1 at pipe.py:4 x8\n1 recv 16 float32 from 0 at pipe.py:6 x8\n1 backward at pipe.py:8 x8",
    "a checkpoint that is not there yet": "0 load at train.py:6 raised\n0-1 barrier at train.py:14",
}
_CAUGHT = {
    "a collective that raised and the other never made": ("0 all_reduce 16 float32 at train.py:12 raised", "train.py:12, which rank 1 never made"),
    "a collective that raised last, everywhere": (
        "0-1 all_reduce 16 float32 at train.py:12 raised",
        "Ranks 0-1 raised in all_reduce of 16 float32 elements at train.py:12",
    ),
    "a collective that raised at two lines": (
        "0 all_reduce 16 float32 at train.py:12 raised\n1 all_reduce 16 float32 at train.py:14 raised",
        "Rank 0 raised in all_reduce of 16 float32 elements at train.py:12; all",
    ),
    "a collective that others never made": ("0 broadcast 16 float32 root 0 at train.py:12", "Rank 0 made broadcast at train.py:12, number 1"),
    "a receive that raised": ("1 recv 16 float32 from 0 at pipe.py:6 raised", "pipe.py:6"),
    "a call that was open at the end": ("0-1 barrier at train.py:12 open", "Ranks 0-1 ended in barrier at train.py:12"),
    "a backward pass that raised": ("0 backward at train.py:10 raised", "Rank 0 raised in backward number 11 at train.py:10"),
    "a step that one rank skipped": ("0 optimizer at train.py:13 x10\n1 optimizer at train.py:13 x9", "10 times on rank 0, rank 1 9 times"),
}


@pytest.mark.parametrize("what", _AGREED)
def test_ranks_that_agree_are_clear(what: str) -> None:
    """Calls that some ranks alone make by their design leave a run clear."""
    diagnosis = _judged(_STEPS + _AGREED[what])
    assert (diagnosis.verdict, diagnosis.undecided) == ("clear", [])


@pytest.mark.parametrize("what", _CAUGHT)
def test_a_failure_that_was_caught_is_not_clear(what: str) -> None:
    """Each trace of a failure that the job caught is told with its rank and line, and with what to do next."""
    ledgers, said = _CAUGHT[what]
    (answer,) = _judged(_STEPS + ledgers).undecided
    assert answer.slug == "caught-failure"
    assert said in answer.because
    assert answer.next


@pytest.mark.parametrize("how", ["raised", "open", ""])
def test_a_rank_of_the_group_that_left_no_file_is_unknown(how: str) -> None:
    """A group may hold ranks that no file and no world size tells of: what they did is not known, and nothing falls over them."""
    diagnosis = _judged("0 forward at train.py:9 x10\n0 all_reduce 16 float32 of 0-1 at train.py:12 %s" % how, ranks=[0])
    assert diagnosis.verdict != "clear"
    assert not diagnosis.findings


def _plant(folder: Path, drawn: random.Random) -> str:
    """Let one rank of a recorded run fail at a drawn step, catch that, and end with 0; return what was done."""
    file = drawn.choice(sorted(folder.glob("*.ledger.txt")))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    steps = [row for row in lines if "record" in row and row["op"] in _COLLECTIVES and not row.get("outer")]
    passes = [row for row in lines if row.get("phase") in ("backward", "optimizer") and row["stamp"] > 1]
    at = drawn.randrange(len(steps) + len(passes))
    if at < len(steps):
        number, raises = steps[at]["record"], drawn.random() < 0.5
        gone = {row["record"] for row in steps if row["record"] > number or (row["record"] == number and not raises)}
        steps[at]["state"] = "raised" if raises else steps[at]["state"]
        lines = [row for row in lines if not {row.get("record"), row.get("outer")} & gone]
        what = "collective %d" % number
    else:
        row = passes[at - len(steps)]
        for one in [one for one in passes if one["phase"] == "optimizer"]:
            one["count"] = one["stamp"] = drawn.randrange(1, one["count"])
        row["state"] = "raised" if row["phase"] == "backward" else row["state"]
        what = row["phase"]
    for number, row in enumerate([row for row in lines if "record" in row], 1):
        row["record"] = number
    lines[0]["lines"] = len(lines) - 1
    file.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    return "%s: %s" % (file.name, what)


@pytest.mark.parametrize(("stack", "name"), _EACH)
def test_no_recorded_run_with_a_planted_failure_is_clear(stack: str, name: str, tmp_path: Path, whole: bool) -> None:
    """One rank of a healthy recorded run fails at a drawn step and catches that: the run is not clear, whatever the step; as recorded it is."""
    healthy = at_home(_RECORDED / stack / name, tmp_path / "healthy")
    assert judge(load([str(healthy)])).verdict == "clear"
    drawn = random.Random()
    for number in range(200 if whole else 12):
        folder = tmp_path / str(number)
        shutil.copytree(healthy, folder)
        what = _plant(folder, drawn)
        diagnosis = judge(load([str(folder)]))
        assert diagnosis.verdict != "clear", what
        shutil.rmtree(folder)
