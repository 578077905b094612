"""What a save to a path is with atomic-save, in every way that a path can be; runs in one process with DDP_PROBE_FIX=atomic-save."""

import errno
import io
import os
import resource
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
# The zip writer of torch 1.12 ends the process with an abort where it cannot write.
FORMAT = {"_use_new_zipfile_serialization": not torch.__version__.startswith("1.")}
OTHER = {"a": torch.zeros(10), "b": "other"}


def plain(state, path, **options):
    """Save as torch does without a remedy."""
    torch.save.__wrapped__(state, path, **options)


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
    assert "class of the job's own" in because


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
    assert declined() == ["/dev/null is no regular file", "/dev/full is no regular file"]


def check_fifo():
    """A named pipe is written to, and its reader gets the bytes of the same save to a file."""
    os.mkfifo("pipe.pth")
    reader = subprocess.Popen(["cat", "pipe.pth"], stdout=subprocess.PIPE)
    torch.save(STATE, "pipe.pth", _use_new_zipfile_serialization=False)
    got = reader.communicate(timeout=20)[0]
    plain(STATE, "a.pth", _use_new_zipfile_serialization=False)
    assert got == content("a.pth")
    assert stat.S_ISFIFO(os.stat("pipe.pth").st_mode)
    assert "no regular file" in declined()[0]


def check_streams_are_the_jobs_own():
    """A save to a stream or to an open file passes unchanged and unsaid."""
    stream = io.BytesIO()
    torch.save(STATE, stream)
    with open("a.pth", "wb") as file:
        torch.save(STATE, file)
    assert content("a.pth") == stream.getvalue()
    assert recorded() == []


def check_what_cannot_be_saved_to():
    """A missing folder, a file in a folder's place, a folder, an empty name and bytes for a name fail as without the remedy."""
    Path("file").write_bytes(b"")
    os.mkdir("folder")
    for path in ("missing/a.pth", "file/a.pth", "folder", "folder/", "new/", "", b"bytes.pth"):
        same_failure(torch.save, STATE, path)
    assert set(os.listdir(".")) <= {"file", "folder", "bytes.pth"}  # torch 1.12 makes that one before it fails


def check_what_cannot_be_pickled():
    """An object that cannot be pickled fails as without the remedy; the old checkpoint stays, where without it half a new one is left."""
    torch.save(STATE, "a.pth")
    old = content("a.pth")
    same = [failure(torch.save, {"f": lambda: 0}, "a.pth"), failure(plain, {"f": lambda: 0}, "b.pth")]
    assert same[0][0] is same[1][0]
    assert content("a.pth") == old


class Interrupts:
    """An object whose pickling is interrupted."""

    def __reduce__(self):
        raise KeyboardInterrupt


def check_ctrl_c():
    """An interruption in the middle of a save leaves the old checkpoint."""
    torch.save(STATE, "a.pth")
    old = content("a.pth")
    assert failure(torch.save, {"a": STATE["a"], "b": Interrupts()}, "a.pth")[0] is KeyboardInterrupt
    assert content("a.pth") == old


def check_no_room_by_a_limit():
    """Where a file may not grow the save fails as without the remedy, and the old checkpoint stays; without it half a new one is left."""
    big = {"a": torch.zeros(200000)}
    torch.save(STATE, "a.pth")
    torch.save(STATE, "b.pth")
    old = content("a.pth")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200000, hard))
    try:
        for save in (torch.save, plain):
            assert failure(save, big, "a.pth" if save is torch.save else "b.pth", **FORMAT)[0] in (RuntimeError, OSError)
        assert failure(LocalBackend().put, b"x" * 300000, "a.pth")[0] is OSError
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert content("a.pth") == old
    assert len(content("b.pth")) != len(old)
    torch.save(big, "a.pth")
    assert torch.load("a.pth")["a"].numel() == 200000


def check_no_room_on_the_disk():
    """On a full disk the save fails as without the remedy, and the old checkpoint stays."""
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", "small"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skipped("A small file system cannot be mounted here.")
    try:
        torch.save(STATE, "small/a.pth")
        old = content("small/a.pth")
        assert failure(torch.save, {"a": torch.zeros(140000)}, "small/a.pth", **FORMAT)[0] in (RuntimeError, OSError)
        told = failure(LocalBackend().put, b"x" * 560000, "small/a.pth")
        assert (told[0], "No space left" in told[1]) == (OSError, True)
        assert content("small/a.pth") == old
        assert os.listdir("small") == ["a.pth"]
    finally:
        subprocess.run(["umount", "small"], check=True)


def check_what_cannot_be_replaced():
    """A file that is a mount of its own cannot be replaced: it is written over, as the job would, and that is said."""
    torch.save(OTHER, "a.pth")
    torch.save(OTHER, "b.pth")
    if subprocess.run(["mount", "--bind", "a.pth", "b.pth"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skipped("A file cannot be mounted here.")
    try:
        recorded()
        torch.save(STATE, "b.pth")
        assert holds("b.pth")
        assert holds("a.pth")
        events = recorded()
        assert [event["event"] for event in events] == ["remedy.applied", "remedy.declined"]
        assert "written over" in events[1]["because"]
    finally:
        subprocess.run(["umount", "b.pth"], check=True)


def with_flush(code, call):
    """Make a call while flushing fails in this way; a disk that does so cannot be had."""
    original = os.fsync

    def fails(fd):
        raise OSError(code, os.strerror(code))

    os.fsync = fails
    try:
        return call()
    finally:
        os.fsync = original


def check_a_file_system_that_cannot_flush():
    """Where flushing is not known the save goes on; where it fails the save has failed, and the old checkpoint stays."""
    torch.save(OTHER, "a.pth")
    with_flush(errno.EINVAL, lambda: torch.save(STATE, "a.pth"))
    assert holds("a.pth")
    told = with_flush(errno.EIO, lambda: failure(torch.save, OTHER, "a.pth"))
    assert (told[0], "Input/output error" in told[1]) == (OSError, True)
    assert holds("a.pth")


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


def check_unprivileged_files():
    """Without privileges: in a folder that takes no file the old one is written in place, a file that is read-only fails as ever.

    A file of somebody else that may be written to is written in place, and stays theirs.
    """
    os.mkdir("closed")
    torch.save(OTHER, "closed/a.pth")
    torch.save(OTHER, "fixed.pth")
    torch.save(OTHER, "theirs.pth")
    if not os.geteuid():
        for path in ("closed", "closed/a.pth", "fixed.pth"):
            os.chown(path, 65534, 65534)
        os.chmod("theirs.pth", 0o666)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    os.chmod("closed", 0o500)
    os.chmod("fixed.pth", 0o400)
    old = content("fixed.pth")
    places = [os.stat(path).st_ino for path in ("closed/a.pth", "theirs.pth")]
    torch.save(STATE, "closed/a.pth")
    same_failure(torch.save, STATE, "closed/new.pth")
    same_failure(torch.save, STATE, "fixed.pth")
    assert content("fixed.pth") == old
    assert holds("closed/a.pth")
    os.chmod("closed", 0o700)
    theirs = os.stat("theirs.pth").st_uid
    torch.save(STATE, "theirs.pth")
    assert holds("theirs.pth")
    assert os.stat("theirs.pth").st_uid == theirs
    assert places == [os.stat("closed/a.pth").st_ino, os.stat("theirs.pth").st_ino]
    torch.save(OTHER, "own.pth")
    inode = os.stat("own.pth").st_ino
    torch.save(STATE, "own.pth")
    assert os.stat("own.pth").st_ino != inode


if __name__ == "__main__":
    main(globals())
