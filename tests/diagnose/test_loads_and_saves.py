"""The saves that a load is compared with are those of the same file, whatever its path is called."""

import os
import random

from ddp_probe.judging import examples
from ddp_probe.judging.judge import judge
from ddp_probe.judging.load_calls import Saves, whole
from ddp_probe.reading.load_run import from_lines
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared import schema

_FOLDERS = ("", "/", "//x", "/a", "/a/", "/a/b", "a", "./a", "/a/../b")
_PARTS = ("a", "b", ".", "..", "/", "/", "x.pt")

_SAVES = """
{"event":"process.start","rank":0,"mono_ns":1000000000,"cwd":"/job"}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":1,"mono_ns":2000000000,"path":"out/a.pt"}
{"event":"checkpoint.save","phase":"end","rank":0,"span":1,"mono_ns":3000000000,"path":"out/a.pt"}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":2,"mono_ns":4000000000,"path":"out/a.pt"}
{"event":"checkpoint.save","phase":"error","rank":0,"span":2,"mono_ns":5000000000,"path":"out/a.pt","failure":{"type":"OSError"}}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":3,"mono_ns":6000000000,"path":"/job/out/a.pt"}
{"event":"checkpoint.save","phase":"end","rank":0,"span":3,"mono_ns":7000000000,"path":"/job/out/a.pt"}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":4,"mono_ns":8000000000,"path":"out/a.pt"}
"""


def test_a_whole_path_is_the_one_that_the_system_would_take() -> None:
    """The short way for plain paths gives what joining and normalising gives, for every folder and path."""
    draw = random.Random(20261122)
    process = LoggedProcess("rank00000.jsonl")
    for _ in range(20000):
        folder, path = draw.choice(_FOLDERS), "".join(draw.choice(_PARTS) for _ in range(draw.randrange(6)))
        process.start = schema.ProcessStart(cwd=folder)
        assert whole(process, path) == os.path.normpath(os.path.join(folder, path)), (folder, path)


def test_the_last_save_before_a_load_has_ended_well() -> None:
    """A save that failed, one that has not ended and one that ended later do not count; relative and absolute paths of one file do."""
    run = from_lines(_SAVES)
    process, saves = run.ranks[0], Saves(run)
    at = [call.until for call in process.calls(schema.Save)]
    assert at[0] is not None
    assert at[2] is not None

    def line(before: float, path: str = "out/../out/a.pt") -> int:
        found = saves.last_ended(process, path, before)
        return 0 if found is None else found[1].line

    assert [line(at[0] - 0.5), line(at[0]), line(at[2] - 0.5), line(at[2] + 99)] == [0, 2, 2, 6]
    assert line(at[2], "out/b.pt") == 0


def test_a_file_that_is_cut_is_not_mended_by_another_save() -> None:
    """No remedy is offered for a checkpoint that has lost its end: atomic-save acts on later saves."""
    logs = [example.log for example in examples.of("checkpoint-truncated") if example.answer == "found"]
    findings = [finding for log in logs for finding in judge(from_lines(log.strip())).findings if finding.id == "DDP501"]
    assert len(findings) > 2
    assert {finding.fix for finding in findings} == {""}
