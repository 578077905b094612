"""The folder of a killed save is told from the folder of a running save."""

import os
import subprocess
import sys
import time

import pytest

from ddp_probe.traced.remedies import atomic_save


@pytest.fixture
def left(tmp_path):
    """Make a folder with half a file, as a save under this name leaves it."""

    def make(name, age=0.0, age_of_file=None):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "last.pth").write_bytes(b"half")
        for path, old in ((folder / "last.pth", age if age_of_file is None else age_of_file), (folder, age)):
            os.utime(str(path), (time.time() - old, time.time() - old))
        return folder

    return make


@pytest.fixture
def sweep(tmp_path):
    """Sweep as a save of this process does, and return which of the folders are there still."""

    def run(*folders):
        own = tmp_path / atomic_save.name()
        own.mkdir()
        atomic_save.sweep(str(own))
        assert own.is_dir()
        return [folder.is_dir() for folder in folders]

    return run


def _named(world=None, pid=None, born=None):
    own = atomic_save.name().rsplit("-", 4)
    return "-".join([own[0], world or own[1], str(pid or own[2]), born or own[3], "77"])


def test_names_are_never_twice_the_same():
    """Each save has a name of its own."""
    assert len({atomic_save.name() for _ in range(1000)}) == 1000


def test_a_save_of_a_dead_process_is_removed(left, sweep):
    """A process that has exited has no running save, and neither has a zombie."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert sweep(left(_named(pid=child.pid, born="1"))) == [False]
    child.wait()
    assert sweep(left(_named(pid=child.pid, born="2"))) == [False]


def test_a_save_of_a_living_process_stays(left, sweep):
    """The saves of this process and of another that lives stay, however old they are."""
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        theirs = left(_named(pid=child.pid, born=atomic_save._started(child.pid)), age=1e6)
        assert sweep(left(_named(), age=1e6), theirs) == [True, True]
    finally:
        child.communicate()
    assert sweep(theirs) == [False]


def test_a_number_that_was_given_again(left, sweep):
    """A process number that belongs to a younger process by now does not keep litter alive."""
    assert sweep(left(_named(born="12"))) == [False]


def test_a_process_that_cannot_be_seen_from_here(left, sweep):
    """Another container's or host's save stays until it has not written a byte for an hour; its process number means nothing here."""
    young, slow, given_up = left(_named("feedbeef", 1)), left(_named("feedbeef", 2), 1e6, 60), left(_named("feedbeef", 3), 1e6)
    assert sweep(young, slow, given_up) == [True, True, False]


def test_nothing_else_is_touched(left, sweep):
    """Folders of other names stay, and so does a file with a name like ours."""
    others = [left("checkpoints", 1e6), left(".ddp_probe_saved", 1e6)]
    assert sweep(*others) == [True, True]
    file = others[0].parent / _named("feedbeef", 1)
    file.write_text("mine")
    os.utime(str(file), (1, 1))
    sweep()
    assert file.read_text() == "mine"
