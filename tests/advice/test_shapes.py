"""The change of a save is code that runs, whatever the shape of the job's call: it is made in the program, which is then run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

import pytest
from shape_table import SAVES, Shape

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.reading.load_run import from_lines
from ddp_probe.showing.own_change import applied, diff

_HEAD = """import functools
import pathlib
import sys

import torch

FOLDER = sys.argv[1]
PATH = FOLDER + "/model.pth"
RANK = [0]
"""
# The file must not have its name while the state is being pickled, and a rank that saves nothing must not rename anything.
_TAIL = """
class Watches:
    def __reduce__(self):
        assert not pathlib.Path(PATH).exists(), "The file has its name before it is whole."
        return str, ("kept",)


STATE = {"weights": torch.ones(3), "watch": Watches()}
for RANK[0] in (1, 0):
    main(RANK[0])
assert torch.load(PATH, **OPTIONS)["watch"] == "kept"
assert [path.name for path in pathlib.Path(FOLDER).iterdir()] == ["model.pth"]
print("well")
"""
_READS = '"site":{"file":"/t.py","line":9,"function":"main"}'
_FAILS = (
    '"failure":{"type":"RuntimeError","message":"PytorchStreamReader failed reading zip archive: failed finding central directory",'
    '"frames":[{"file":"/t.py","line":9,"function":"main"}]}}'
)
_RACE = """
{"event":"process.start","rank":0,"world_size":2,"mono_ns":1000000000}
{"event":"process.start","rank":1,"world_size":2,"mono_ns":1000000000}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":1,"mono_ns":2000000000,"path":"/out/model.pth"%s,"site":SITE}
{"event":"checkpoint.load","phase":"begin","rank":1,"span":2,"mono_ns":2100000000,"file":{"path":"/out/model.pth","size":7,"kind":"zip"},READS}
{"event":"checkpoint.load","phase":"error","rank":1,"span":2,"mono_ns":2200000000,FAILS
{"event":"process.end","rank":1,"uncaught":true,"exit_code":1,"mono_ns":2300000000,FAILS
{"event":"checkpoint.save","phase":"end","rank":0,"span":1,"mono_ns":2400000000,"path":"/out/model.pth","in_place":true}
{"event":"process.end","rank":0,"exit_code":0,"mono_ns":2500000000}
""".replace("READS", _READS).replace("FAILS", _FAILS)
_ABSENT = """
{"event":"process.start","rank":0,"world_size":2,"mono_ns":1000000000}
{"event":"process.start","rank":1,"world_size":2,"mono_ns":1000000000}
{"event":"checkpoint.save","phase":"begin","rank":0,"span":1,"mono_ns":2000000000,"path":"/out/model.pth"%s,"site":SITE}
{"event":"checkpoint.save","phase":"error","rank":0,"span":1,"mono_ns":2100000000,FAILS
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"mono_ns":2300000000,FAILS
""".replace("FAILS", '"failure":{"type":"RuntimeError","message":"Parent directory /out does not exist.","frames":[SITE]}}')
# One process runs all programs, as torch is imported for seconds.
_ALL = """
import io, contextlib, json, runpy, sys, traceback
for number, name in enumerate(sys.argv[1:]):
    sys.argv[1:], told = [name + ".out"], ""
    __import__("os").mkdir(name + ".out")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(name, run_name="__main__")
    except Exception:
        told = traceback.format_exc()
    print(json.dumps(told), flush=True)
"""


class Followed(NamedTuple):
    """A program, what is found in it, and how it ends before the change and after it."""

    file: Path
    finding: Finding
    before: str
    after: str


def _program(shape: Shape, absent: str) -> str:
    """Return a whole program; a folder that is absent is one that the state is not to watch."""
    options = "OPTIONS = {'weights_only': False} if not torch.__version__.startswith('1.') else {}\n"
    program = shape.program(_HEAD) + options + _TAIL
    if absent:
        return program.replace("sys.argv[1]", "sys.argv[1] + '%s'" % absent).replace("not pathlib.Path(PATH).exists()", "True")
    return program


def _found(shape: Shape, file: Path, log: str, rule: str) -> Finding:
    site = {"file": str(file), "line": shape.line(_HEAD), "function": shape.function()}
    text = log.replace("SITE", json.dumps(site)).strip()
    return next(finding for finding in judge(from_lines(text)).findings if finding.id == rule)


def _run(files: List[Path]) -> List[str]:
    command = [sys.executable, "-c", _ALL, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _changed(file: Path, finding: Finding) -> str:
    before = file.read_text(encoding="utf-8").splitlines()
    after = applied(before, finding.edits) if finding.edits else before
    assert after is not None, finding.remedy
    return "\n".join(after) + "\n"


def _followed(shapes: Sequence[Shape], folder: Path, rule: str, log: str, absent: str = "") -> Dict[str, Followed]:
    """Make the change in each program, and run all of them before and after it."""
    before, after, findings = [], [], []  # type: List[Path], List[Path], List[Finding]
    for number, shape in enumerate(shapes):
        before.append(folder / ("before%d.py" % number))
        after.append(folder / ("after%d.py" % number))
        before[-1].write_text(_program(shape, absent), encoding="utf-8")
        findings.append(_found(shape, before[-1], log % (',"opened":true' if "file" in shape.text else ""), rule))
        after[-1].write_text(_changed(before[-1], findings[-1]), encoding="utf-8")
    ended = _run([*before, *after])
    halves = zip(before, findings, ended[: len(before)], ended[len(before) :])
    return {shape.name: Followed(*half) for shape, half in zip(shapes, halves)}


@pytest.fixture(scope="module")
def races(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Followed]:
    """All shapes of a save that a load meets half written."""
    return _followed(SAVES, tmp_path_factory.mktemp("races"), "DDP503", _RACE)


def _in_words(shape: Shape, followed: Followed) -> None:
    """The words name the file, the line and the function of a call for which there is no diff."""
    remedy = followed.finding.remedy
    assert (followed.finding.edits, diff(followed.finding)) == ([], [])
    assert "%s:%d" % (followed.file, shape.line(_HEAD)) in remedy
    assert shape.function() in remedy or "lambda" in shape.name
    assert "kwargs" not in remedy


@pytest.mark.parametrize("shape", SAVES, ids=lambda shape: shape.name)
def test_a_save_gets_its_name_when_it_is_whole(shape: Shape, races: Dict[str, Followed]) -> None:
    """Before the change the file has its name too early, after it the job is well; without an exact change the words name the place."""
    followed = races[shape.name]
    assert "The file has its name before it is whole." in followed.before
    if "DDP503" not in shape.exact:
        _in_words(shape, followed)
        return
    assert followed.after == "", _changed(followed.file, followed.finding)
    added = [line[1:].strip() for line in diff(followed.finding) if line.startswith("+")]
    renames = [line for line in added if line.startswith("os.replace(")]
    assert all(line in followed.finding.remedy for line in renames)
    assert "os.replace(" in followed.finding.remedy


@pytest.fixture(scope="module")
def absences(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Followed]:
    """All shapes of a save whose folder is not there, and that opens the file itself."""
    shapes = [shape for shape in SAVES if "file" not in shape.text]
    return _followed(shapes, tmp_path_factory.mktemp("absences"), "DDP521", _ABSENT, "/made")


@pytest.mark.parametrize("shape", [shape for shape in SAVES if "file" not in shape.text], ids=lambda shape: shape.name)
def test_a_save_makes_its_folder(shape: Shape, absences: Dict[str, Followed]) -> None:
    """Before the change the folder is missing, after it the job is well; without an exact change the words name the place."""
    followed = absences[shape.name]
    assert "Parent directory" in followed.before or "No such file or directory" in followed.before
    if "DDP521" not in shape.exact:
        _in_words(shape, followed)
        return
    assert followed.after == "", _changed(followed.file, followed.finding)
    assert "os.makedirs(" in followed.finding.remedy
