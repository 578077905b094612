"""Beside the runs: a pointer to the newest one, and a note that keeps them out of version control."""

import os

from ddp_probe.shared.ours import ours

from ._file import make_folder
from ._modes import umask

_NAME = "latest"


def point_at(folder: str) -> None:
    """Let 'latest' point at this run's folder; what somebody else has put under that name stays."""
    root, run = os.path.split(folder)
    pointer = os.path.join(root, _NAME)
    if os.path.lexists(pointer) and not os.path.islink(pointer):
        return
    make_folder(root)
    _keep_out_of_git(root)
    temporary = "%s.%d.%s" % (pointer, os.getpid(), os.urandom(4).hex())  # hosts that share the folder have equal pids
    os.symlink(run, temporary)
    try:
        os.replace(temporary, pointer)
    except ours(OSError):  # another user's link, in a folder where only its owner may replace it: that one stays
        os.unlink(temporary)


def _keep_out_of_git(root: str) -> None:
    try:
        fd = os.open(os.path.join(root, ".gitignore"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 & ~umask(root))
    except ours(FileExistsError):
        return
    os.write(fd, b"*\n")
    os.close(fd)
