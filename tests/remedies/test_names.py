"""What stands in DDP_PROBE_FIX: right names, wrong ones, and none."""

import pytest

from ddp_probe.shared.settings import REMEDIES

LOADED = """
import sys, torch
torch.save({"a": 1}, "a.pth")
torch.save({"a": 1}, "a.pth")
print(sorted(name for name in sys.modules if name.startswith("ddp_probe.traced.remedies")))
print("loaded", torch.load("a.pth"))
"""


@pytest.mark.parametrize("fix", ["atomic-safe", "auto,set_device"])
def test_a_wrong_name(rank_program, remedy_events, fix):
    """A wrong name is told in one line with the list of the right ones; nothing is changed, and the job goes on."""
    done = rank_program(LOADED, fix)
    assert done.stdout == "[]\nloaded {'a': 1}\n"
    (line,) = [line for line in done.stderr.splitlines() if "DDP_PROBE_FIX" in line]
    assert line.startswith("ddp_probe: ")
    assert "auto, or some of " + ", ".join(REMEDIES) in line
    assert "Nothing is changed" in line
    assert remedy_events() == []


def test_a_wrong_name_is_told_once_in_a_launch(torchrun, armed, tmp_path):
    """Of several ranks one tells the wrong name."""
    job = tmp_path / "job.py"
    own_folder = "import os\nos.mkdir(os.environ['RANK'])\nos.chdir(os.environ['RANK'])\n"  # Or they would write one file at once.
    job.write_text(own_folder + LOADED + "print('end')")
    done = torchrun(job, nproc=2, env=armed(tmp_path / "runs", DDP_PROBE_FIX="atomic-safe"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("end") == 2  # Two ranks may write their words before their line breaks.
    assert done.stderr.count("auto, or some of ") == 1


def test_without_the_probe_nothing(run_python, armed, tmp_path):
    """DDP_PROBE_FIX without DDP_PROBE does nothing: not even the probe is loaded, and a save is made in place."""
    code = LOADED + "import os; inode = os.stat('a.pth').st_ino; torch.save({}, 'a.pth'); assert os.stat('a.pth').st_ino == inode\n"
    code += "print(sorted(name for name in sys.modules if name.startswith('ddp_probe.')), type.__call__(type, torch.save).__name__)"
    done = run_python(code, env=armed(None, DDP_PROBE_FIX="auto"), cwd=tmp_path)
    assert done.stdout.splitlines() == ["[]", "loaded {'a': 1}", "[] function"], done.stderr
    assert done.stderr == ""
    assert not (tmp_path / "runs").exists()


def test_without_a_name_nothing(rank_program, remedy_events):
    """DDP_PROBE without DDP_PROBE_FIX loads nothing of the remedies."""
    done = rank_program(LOADED, "")
    assert done.stdout.splitlines()[0] == "[]"
    assert remedy_events() == []


def test_one_name_loads_one_remedy(rank_program, remedy_events):
    """A name loads that remedy's file, what it stands on, and no other remedy."""
    done = rank_program(LOADED, "timeout")
    assert done.stdout.splitlines()[0] == str(["ddp_probe.traced.remedies", "ddp_probe.traced.remedies.timeout"])
    assert remedy_events() == []


def test_the_first_change_of_each_kind_is_said(rank_program, remedy_events):
    """A change that a person has to know of is said once, with the rank, the line and both values, and recorded every time."""
    code = "import torch\nfor _ in range(3):\n    torch.cuda.set_device(0)\n"
    done = rank_program(code, "set-device")
    lines = [line for line in done.stderr.splitlines() if "DDP_PROBE_FIX" in line]
    assert len(lines) == 1, done.stderr
    assert "rank 0 at <string>:3: DDP_PROBE_FIX set-device: torch.cuda.set_device(0) was skipped, because this host has no CUDA" in lines[0]
    assert len(remedy_events()) == 3


def test_many_changes_do_not_fill_the_log(rank_program, remedy_events):
    """Of 300 changes by one remedy the first twenty are recorded, and then the 32nd, the 64th, the 128th and the 256th."""
    rank_program("import torch\nfor _ in range(300):\n    torch.save({}, 'a.pth')\n", "atomic-save")
    assert len(remedy_events()) == 24


def test_a_forked_child_is_left_alone(rank_program, remedy_events):
    """A child that is forked off, as a worker of a DataLoader is, saves and loads without remedies."""
    code = """
import os, torch
torch.save({}, "a.pth")
inode = os.stat("a.pth").st_ino
if os.fork() == 0:
    torch.save({}, "a.pth")
    os._exit(os.stat("a.pth").st_ino != inode)
assert os.wait()[1] == 0
torch.save({}, "a.pth")
assert os.stat("a.pth").st_ino != inode
"""
    rank_program(code)
    assert [event["remedy"] for event in remedy_events("remedy.applied")] == ["atomic-save"] * 2
