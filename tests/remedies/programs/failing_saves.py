"""What a save to a path does with atomic-save if it fails, or if no file can replace another; one process, DDP_PROBE_FIX=atomic-save."""

import errno
import os
import resource
import subprocess
from pathlib import Path

import torch
from checked import Skipped, failure, main, recorded, same_failure
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


def check_what_cannot_be_saved_to():
    """A missing folder, a file in a folder's place, a folder, an empty name and bytes for a name fail as without the remedy."""
    Path("file").write_bytes(b"")
    os.mkdir("folder")
    for path in ("missing/a.pth", "file/a.pth", "folder", "folder/", "new/", "", b"bytes.pth"):
        same_failure(torch.save, STATE, path)
    assert set(os.listdir(".")) <= {"file", "folder", "bytes.pth"}  # torch 1.12 makes that one before it fails


def check_what_cannot_be_pickled():
    """An object that cannot be pickled fails as without the remedy; the old checkpoint stays; without the remedy half a new one is left."""
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
    """If a file may not grow, the save fails as without the remedy, and the old checkpoint stays; without it half a new one is left."""
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
    """If the file system cannot flush, the save goes on; if flushing fails, the save has failed, and the old checkpoint stays."""
    torch.save(OTHER, "a.pth")
    with_flush(errno.EINVAL, lambda: torch.save(STATE, "a.pth"))
    assert holds("a.pth")
    told = with_flush(errno.EIO, lambda: failure(torch.save, OTHER, "a.pth"))
    assert (told[0], "Input/output error" in told[1]) == (OSError, True)
    assert holds("a.pth")


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
    assert places[0] == os.stat("closed/a.pth").st_ino
    assert theirs == os.geteuid() or places[1] == os.stat("theirs.pth").st_ino  # Only root can make a file of somebody else.
    torch.save(OTHER, "own.pth")
    inode = os.stat("own.pth").st_ino
    torch.save(STATE, "own.pth")
    assert os.stat("own.pth").st_ino != inode


if __name__ == "__main__":
    main(globals())
