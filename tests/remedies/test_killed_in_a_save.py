"""A writer that is killed in the middle of a save, as by a scheduler, an empty battery or the kernel."""

import json

import pytest
from remedy_runs import PROGRAMS


@pytest.fixture
def kill(run_python, armed, tmp_path):
    """Kill so many writers at random moments; return what was found."""

    def run(kills, fix):
        env = armed(tmp_path / "runs", DDP_PROBE_FIX=fix, DDP_PROBE_ECHO="off")
        done = run_python([PROGRAMS / "killed.py", kills], env=env, cwd=tmp_path, timeout=240)
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads(done.stdout.splitlines()[-1])
        print("%s: %s" % (fix or "without", told))
        return told

    return run


def test_the_old_or_the_new_one_whole(kill, whole):
    """After each kill the checkpoint is whole, and no older than the one before; nothing else is left after the next save."""
    kills = 250 if whole else 100
    told = kill(kills, "atomic-save")
    assert (told["broken"], told["back"]) == (0, 0)
    assert told["in a save"] > kills * 0.4
    assert (told["not swept"], told["left"]) == (0, 0)


def test_without_the_remedy_it_breaks(kill):
    """Without the remedy the same kills leave half a checkpoint, again and again."""
    told = kill(20, None)
    assert told["broken"] > 2
    assert told["in a save"] == 0


STEPS = """
import os, torch
done = []
def noted(name, describe):
    original = getattr(os, name)
    def call(*args, **kwargs):
        result = original(*args, **kwargs)
        done.append(name + " " + describe(*args))
        return result
    setattr(os, name, call)
def kind(fd):
    path = os.readlink("/proc/self/fd/%d" % fd)
    return "folder" if os.path.isdir(path) else "file of %d bytes" % os.path.getsize(path)
noted("fsync", kind)
noted("replace", lambda one, other: "%s by a file of its folder %s" % (os.path.basename(other), os.path.dirname(one).startswith(os.getcwd())))
torch.save({"a": torch.zeros(1000)}, "last.pth")
done = [step for step in done if " latest " not in step]
assert done == ["fsync file of %d bytes" % os.path.getsize("last.pth"), "replace last.pth by a file of its folder True", "fsync folder"], done
"""


def test_on_the_disk_before_it_takes_the_place(rank_program):
    """The whole file is flushed before it takes the old one's place, and the folder afterwards: a power cut finds one of the two."""
    rank_program(STEPS, "atomic-save")
