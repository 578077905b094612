"""The one line of a launcher while its ranks stand still."""

import json
import os
import platform

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines
from ddp_probe.shared import schema
from ddp_probe.showing import standstill_words

_STEP = "ledger 0-3 all_reduce 16 float32 at /train/t.py:12 x3\n"


def _lines(text: str) -> str:
    return "\n".join(standstill_words.lines(judge(from_lines(text))))


def test_a_missing_rank_is_named_with_both_lines() -> None:
    """The finding is said as the brief report has it, with its rule."""
    said = _lines(_STEP + "ledger 3 dataloader at /train/t.py:9 open\nledger 0-2 all_reduce 16 float32 at /train/t.py:12 open")
    assert said.startswith("DDP629 rank-missing-from-collective [rank 3]: Ranks 0-2 wait in all_reduce of 16 float32 elements at /train/t.py:12")
    assert "rank 3 is in the DataLoader, waiting for a batch at t.py:9" in said


def test_work_that_takes_long_is_a_note() -> None:
    """A rank that validates while others wait is a note, not a warning or an error."""
    said = _lines("ledger 0 validate at /train/val.py:7 open\nledger 1-3 barrier at /train/t.py:20 open")
    assert said.startswith("DDP637 rank-works-while-others-wait [rank 0] note: Rank 0 is in validation at /train/val.py:7")
    assert said.endswith(" Nothing is wrong if that takes so long.")


def test_a_rank_that_still_starts_is_a_note() -> None:
    """A rank without a file whose process runs may import: that is a note with its process; if it does not run, it is said to be missing."""
    start = {"event": "process.start", "rank": 0, "world_size": 2, "environment": {"DDP_PROBE_HANG_AFTER": "5"}}
    joins = {"event": "dist.init_process_group", "phase": "begin", "rank": 0, "span": 1, "site": {"file": "/job/t.py", "line": 3, "function": "main"}}
    launcher = {"role": "launcher", "pid": 7, "host": platform.node()}
    for child in (os.getpid(), 1 << 30):
        group = {"event": "launcher.group", "phase": "end", "span": 1, "children": {"0": 1, "1": child}}
        launched = [{"event": "launcher.start"}, {"event": "launcher.group", "phase": "begin", "span": 1}, group]
        run = from_lines(
            "\n".join(map(json.dumps, (start, joins, *({**one, **launcher} for one in launched)))) + "\nledger 0 init_process_group open"
        )
        run.running = {0}
        call = run.ranks[0].final(schema.InitProcessGroup)
        assert call is not None
        run.read_at = call.when + 6
        said = "\n".join(standstill_words.lines(judge(run)))
        assert said.startswith("DDP419 rank-never-started [rank 1]%s: Rank 1 of 2 has not arrived" % (" note" if child == os.getpid() else "")), said
        assert ("Its process (%d) runs" % child in said) == said.endswith("Nothing is wrong if that takes so long.") == (child == os.getpid())


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (_STEP + "ledger 0-3 barrier at /train/t.py:20 open", "Undecided: ranks 0-3 in barrier at /train/t.py:20, and no rank is missing there."),
        (_STEP, ""),
        ("ledger 0-3 validate at /train/val.py:7 open", ""),
    ],
    ids=["all in one call", "in no call", "all at work"],
)
def test_what_no_rule_explains(log: str, said: str) -> None:
    """If all ranks are in one call, that is said; if no rank is in a call, nothing is."""
    assert _lines(log) == said
