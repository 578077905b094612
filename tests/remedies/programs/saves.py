"""What a save to a path is with atomic-save, in every way that a path can be; runs in one process with DDP_PROBE_FIX=atomic-save."""

import io
import os
import stat
import subprocess
import threading
import time
from collections import OrderedDict
from pathlib import Path

import torch
from checked import Skipped, applied, declined, failure, main, recorded, same_failure
from mmengine.fileio.backends.local_backend import LocalBackend

STATE = {"a": torch.arange(20000, dtype=torch.float32), "b": "text"}
# The zip writer of torch 1.12 aborts the process if it cannot write.
FORMAT = {"_use_new_zipfile_serialization": not torch.__version__.startswith("1.")}
OTHER = {"a": torch.zeros(10), "b": "other"}


def plain(state, path, **options):
    """Save as torch does without a remedy."""
    torch.save._self_original(state, path, **options)


def holds(path, state=STATE):
    """Tell that a file holds a state."""
    found = torch.load(path)
    return found["b"] == state["b"] and torch.equal(found["a"], state["a"])


def content(path):
    """Return a file's bytes."""
    return Path(path).read_bytes()


def check_same_bytes():
    """The file's bytes are those of a save without the remedy, in the format of today and in the one before it."""
    os.mkdir("with")
    os.mkdir("without")
    for name, options in (("last.pth", {}), ("größe.pth", {}), ("old.pth", {"_use_new_zipfile_serialization": False})):
        torch.save(STATE, "with/" + name, **options)
        plain(STATE, "without/" + name, **options)
        if "old" in name:  # that format names each storage by its address, which is the same here, and no more than that
            assert os.path.getsize("with/" + name) == os.path.getsize("without/" + name)
        assert content("with/" + name) == content("without/" + name), name
    assert applied() == ["atomic-save"] * 3


def check_every_kind_of_path():
    """A name, a Path, a keyword, a relative name, dots and a file that is there already: all of them are saved to."""
    os.mkdir("here")
    for path in ("a.pth", Path("b.pth"), "./here/../c.pth", os.path.abspath("d.pth")):
        torch.save(OTHER, path)
        torch.save(STATE, f=path)
        assert holds(path)
    assert applied() == ["atomic-save"] * 8


def check_the_event_tells_both_paths():
    """The event tells where the save was to go, where it went, and that it was renamed."""
    torch.save(STATE, "a.pth")
    (event,) = recorded()
    assert event["before"] == {"f": "a.pth"}
    assert event["after"]["then"] == "renamed to %s" % os.path.abspath("a.pth")
    assert os.path.basename(event["after"]["f"]) == "a.pth"
    assert event["site"]["file"] == __file__
    assert event["target"] == "torch.serialization.save"


def check_a_path_of_the_jobs_own():
    """A path of a class of the job's own is not asked for its name: torch asks it once, and saves to it as ever."""
    if torch.__version__.startswith("1."):
        raise Skipped("torch 1.12 takes no other class than Path.")
    asked = []

    class Own:
        def __fspath__(self):
            asked.append(1)
            return "own.pth"

    torch.save(STATE, Own())
    assert holds("own.pth")
    with_remedy, asked[:] = len(asked), []
    plain(STATE, Own())
    assert with_remedy == len(asked)
    (because,) = declined()
    assert "the job's own class" in because


class Wanders:
    """An object that changes the folder while it is pickled."""

    def __reduce__(self):
        os.chdir("/")
        return (OrderedDict, ())


def check_a_folder_that_changes_meanwhile():
    """A relative path means the folder that the process was in when the save began."""
    here = os.getcwd()
    torch.save({**STATE, "c": Wanders()}, "a.pth")
    assert os.getcwd() == "/"
    assert holds(os.path.join(here, "a.pth"))
    assert not os.path.exists("/a.pth")


def check_a_symlink_stays():
    """A link stays a link, and what it leads to is replaced in its own folder; a link to nothing yet leads to the new file."""
    os.mkdir("far")
    torch.save(OTHER, "far/real.pth")
    os.symlink("far/real.pth", "link.pth")
    os.symlink("link.pth", "second.pth")
    os.symlink("far/new.pth", "dangling.pth")
    torch.save(STATE, "second.pth")
    torch.save(STATE, "dangling.pth")
    assert os.path.islink("link.pth")
    assert os.path.islink("second.pth")
    assert os.path.islink("dangling.pth")
    assert holds("far/real.pth")
    assert holds("far/new.pth")
    assert sorted(os.listdir("far")) == ["new.pth", "real.pth"]


def check_links_in_a_circle():
    """Links in a circle fail as they do without the remedy, and stay."""
    os.symlink("a", "b")
    os.symlink("b", "a")
    same_failure(torch.save, STATE, "a")
    assert os.path.islink("a")
    assert os.path.islink("b")


def check_hard_links_are_left():
    """A file of two names is written in place: both names have the new content, as without the remedy."""
    torch.save(OTHER, "a.pth")
    os.link("a.pth", "b.pth")
    recorded()
    torch.save(STATE, "a.pth")
    assert holds("b.pth")
    assert os.path.samefile("a.pth", "b.pth")
    assert "several names" in declined()[0]


def check_permissions_stay():
    """A file keeps its permissions, also those that the umask would not give; a new one has what the umask leaves."""
    before = os.umask(0o027)
    try:
        for mode in (0o600, 0o644, 0o666, 0o4755):
            Path("a.pth").write_bytes(b"old")
            os.chmod("a.pth", mode)
            torch.save(STATE, "a.pth")
            assert stat.S_IMODE(os.stat("a.pth").st_mode) == mode, oct(stat.S_IMODE(os.stat("a.pth").st_mode))
        torch.save(STATE, "b.pth")
        plain(STATE, "c.pth")
        assert os.stat("b.pth").st_mode == os.stat("c.pth").st_mode
        assert stat.S_IMODE(os.stat("b.pth").st_mode) == 0o640
    finally:
        os.umask(before)


def check_owner_and_attributes_stay():
    """The superuser's save into somebody's file leaves it theirs; extended attributes stay where the file system has them."""
    if os.geteuid():
        raise Skipped("Only the superuser can give files away.")
    torch.save(OTHER, "a.pth")
    os.chown("a.pth", 1234, 2345)
    try:
        os.setxattr("a.pth", "user.run", b"17")
    except OSError:
        print("no extended attributes here")
    else:
        torch.save(OTHER, "a.pth")
        assert os.getxattr("a.pth", "user.run") == b"17"
    torch.save(STATE, "a.pth")
    status = os.stat("a.pth")
    assert (status.st_uid, status.st_gid) == (1234, 2345)
    assert holds("a.pth")


def check_the_group_of_the_folder():
    """In a folder that gives its group to new files, a new file has that group."""
    if os.geteuid():
        raise Skipped("Only the superuser can give folders away.")
    os.mkdir("shared")
    os.chown("shared", -1, 2345)
    os.chmod("shared", 0o2775)
    torch.save(STATE, "shared/a.pth")
    assert os.stat("shared/a.pth").st_gid == 2345


def check_dev_null():
    """A device is written to, and stays one."""
    torch.save(STATE, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.symlink("/dev/full", "full.pth")
    assert failure(torch.save, STATE, "full.pth", **FORMAT)[0] in (RuntimeError, OSError)
    assert os.path.islink("full.pth")
    assert declined() == ["/dev/null is not a regular file", "/dev/full is not a regular file"]


def check_fifo():
    """A named pipe is written to, and its reader gets the bytes of the same save to a file."""
    os.mkfifo("pipe.pth")
    reader = subprocess.Popen(["cat", "pipe.pth"], stdout=subprocess.PIPE)
    torch.save(STATE, "pipe.pth", _use_new_zipfile_serialization=False)
    got = reader.communicate(timeout=20)[0]
    plain(STATE, "a.pth", _use_new_zipfile_serialization=False)
    assert got == content("a.pth")
    assert stat.S_ISFIFO(os.stat("pipe.pth").st_mode)
    assert "not a regular file" in declined()[0]


def check_streams_are_the_jobs_own():
    """A save to a stream or to an open file passes unchanged and unsaid."""
    stream = io.BytesIO()
    torch.save(STATE, stream)
    with open("a.pth", "wb") as file:
        torch.save(STATE, file)
    assert content("a.pth") == stream.getvalue()
    assert recorded() == []


def check_many_at_once():
    """Threads that save to one path do not meet: the last one wins, whole."""
    states = [{"a": torch.full((20000,), float(number)), "b": "text"} for number in range(8)]
    threads = [threading.Thread(target=torch.save, args=(state, "a.pth")) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = torch.load("a.pth")["a"]
    assert len(set(found.tolist())) == 1
    assert applied() == ["atomic-save"] * 8


def check_mmengines_own_save():
    """mmengine's local backend makes the folder, as ever, and writes atomically from the first save on."""
    LocalBackend().put(b"one", "new/folder/a.bin")
    LocalBackend().put(obj=b"two", filepath=Path("new/folder/a.bin"))
    assert content("new/folder/a.bin") == b"two"
    assert os.listdir("new/folder") == ["a.bin"]
    assert applied() == ["atomic-save"] * 2
    Path("file").write_bytes(b"")
    same_failure(LocalBackend.put, LocalBackend(), b"x", "file/a.bin")


def check_a_reader_never_meets_half_of_it():
    """A reader that looks as often as it can sees the old file or the new one, and never none."""
    torch.save(STATE, "a.pth")
    size, seen, stop = os.path.getsize("a.pth"), set(), []

    def look():
        while not stop:
            seen.add(os.path.getsize("a.pth"))

    reader = threading.Thread(target=look)
    reader.start()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        torch.save(STATE, "a.pth")
    stop.append(1)
    reader.join()
    assert seen == {size}


if __name__ == "__main__":
    main(globals())
