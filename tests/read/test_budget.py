"""However much a log or an event says, reading it takes a bounded share, and the inventory tells what was left out."""

import gc
import random
import time
from pathlib import Path
from typing import Callable, Dict, List

import pytest
from schedule import seed

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines, load

pytestmark = pytest.mark.slow
Event = Callable[..., str]


def test_too_much_trouble_is_told(tmp_path: Path) -> None:
    """Of a log with more trouble than is read, the first failure and the last are found, and a note counts what is between."""
    path = tmp_path / "train.log"
    noise = "".join("[rank%d]: KeyError: %x %s\n" % (line % 8, line * 7919, chr(97 + line % 26) * (line % 90)) for line in range(100_000))
    path.write_text("ValueError: the first\n" + noise + "ValueError: the last\n")
    run = load([str(path)])
    assert [run.failures[0].message, run.failures[-1].message] == ["the first", "the last"]
    assert run.texts[0].lines == 100_002
    assert [note.split(" has ")[-1].split(":")[0] for note in run.inventory.notes[:1]] == ["too many lines with signs of trouble"]
    assert 0 < run.texts[0].passed < 100_000


def test_a_quiet_log_has_no_note(tmp_path: Path) -> None:
    """A training log of which each line has the same harmless word is read to its end, and nothing is left out."""
    path = tmp_path / "train.log"
    path.write_text("".join("step %d: top1_error 0.%d, not found 0\n" % (step, step) for step in range(200_000)) + "ValueError: at the end\n")
    run = load([str(path)])
    assert run.inventory.notes == []
    assert [failure.message for failure in run.failures if failure.type] == ["at the end"]


def test_line_kinds_cost_little(tmp_path: Path) -> None:
    """A line that differs from others in its numbers only costs a tenth of one that says something new."""
    words = random.Random(1)
    alike, new = tmp_path / "alike.log", tmp_path / "new.log"
    alike.write_text("".join("Epoch(train) [1][%d/9000] loss: %.4f memory: %d\n" % (step, words.random(), step) for step in range(10_000)))
    new.write_text("".join("failed %s\n" % "".join(words.choice("abcdefgh ") for _ in range(42)) for step in range(10_000)))
    seconds: Dict[Path, List[float]] = {alike: [], new: []}
    for path in (alike, new) * 4:
        gc.unfreeze()  # Else it collects what an earlier reading left, and with that goes over all that other tests left.
        begin = time.process_time()
        load([str(path)])
        seconds[path].append(time.process_time() - begin)
    assert min(seconds[alike]) < min(seconds[new]) / 10  # What else the machine does can only add to the time that a reading takes.


def test_a_long_message_of_an_event(tmp_path: Path, event: Event) -> None:
    """Of an exception's words in an event its beginning and its end are kept, and the rules take no longer for a megabyte of them."""
    path = tmp_path / "rank00000.node1.1.jsonl"
    seconds = []
    for size in (1 << 14, 1 << 19):
        message = "Watchdog caught collective operation timeout: " * (size // 46) + "the end"
        failure = {"type": "RuntimeError", "message": message, "frames": [{"file": "/t.py", "line": n, "function": "f"} for n in range(500)]}
        path.write_text(event("process.start", rank=0) + "\n" + event("process.end", rank=0, uncaught=True, exit_code=1, failure=failure) + "\n")
        begin = time.process_time()
        run = load([str(path)])
        judge(run)
        seconds.append(time.process_time() - begin)
        (failed,) = run.failures
        assert len(failed.message) < 20_000
        assert failed.message.endswith("the end")
        assert len(failed.frames) <= 200
    assert seconds[1] < 10 * seconds[0] + 1


def test_a_world_of_a_million() -> None:
    """A world size that no launch has is not believed, and the inventory says so; the ranks that wrote are there."""
    run = from_lines('{"event":"process.start","rank":0,"world_size":1000000}\n')
    assert (run.expected, list(run.ranks)) == (None, [0])
    assert run.inventory.notes == ["Ignored an implausible world size of 1000000."]


def test_any_text_is_read_and_judged(whole: bool) -> None:
    """Texts put together at random from what logs consist of, by the seed of the run, are read and judged twice, without an exception and alike."""
    pieces = """Traceback (most recent call last):|  File "/t.py", line 3, in main|    go()|RuntimeError: x|[rank1]: |[Rank 3] Watchdog|\r|\n|\n|
        |\x1b[31m|\u2502 |  + Exception Group Traceback (most recent call last):|ChildFailedError:|====
        |rank      : 1 (local_rank: 1)|exitcode  : -9 (pid: 1)
        |Root Cause (first observed failure):|[0]:|  |: |0|\u00e9|\0|Error|Connection closed by peer|----> 3 |CUDA out of memory. Tried|{|\\
        |%s""".split("|")
    chance = random.Random(seed())
    for _ in range(20_000 if whole else 150):
        log = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 120)))
        answers = [[finding.verdict for finding in judge(from_lines(log)).findings] for _ in range(2)]
        assert answers[0] == answers[1], log
