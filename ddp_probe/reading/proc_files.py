"""Reads from /proc which processes this host has, whose they are, what each is, and how it was started."""

import os
import pwd
from typing import Dict, List, NamedTuple, Optional

from ddp_probe.shared.masks import mask_argv
from ddp_probe.shared.regular_files import open_bytes, open_text

ROOT = "/proc"
GONE = ("", "Z", "X", "x")
# Among the fields of stat after the name in brackets, which may contain spaces and brackets.
_STATE, _PARENT, _TIMES, _WAITED, _BORN, _EXIT = 0, 1, slice(11, 13), slice(13, 15), 19, 49


class Stat(NamedTuple):
    """A process at one moment."""

    pid: int
    name: str
    state: str
    parent: int
    born: int  # Clock ticks since boot.
    cpu: float  # Seconds.
    waited: float  # CPU seconds of its children that have ended and that it has waited for, and of theirs.
    ended: int  # How a zombie has ended, as a parent that waits gets it; 0 if it runs, did well, or may not be read.


def stat(pid: int) -> Optional[Stat]:
    """Return what a process is and does; None if there is none with this number."""
    head, _, rest = text("%d/stat" % pid).rpartition(")")
    fields = rest.split()
    if len(fields) <= _BORN or not fields[_BORN].isdigit():
        return None
    cpu, waited = (sum(map(int, fields[times])) / os.sysconf("SC_CLK_TCK") for times in (_TIMES, _WAITED))
    ended = int(fields[_EXIT]) if len(fields) > _EXIT and fields[_STATE] in GONE else 0
    return Stat(pid, head.partition("(")[2], fields[_STATE], int(fields[_PARENT]), int(fields[_BORN]), cpu, waited, ended)


def pids() -> List[int]:
    """Return the processes of this host that this process sees."""
    try:
        return sorted(int(name) for name in os.listdir(ROOT) if name.isdigit())
    except OSError:
        return []


def owner(pid: int) -> Optional[int]:
    """Return the user that a process belongs to."""
    try:
        return os.stat("%s/%d" % (ROOT, pid)).st_uid
    except OSError:
        return None


def user(number: Optional[int]) -> str:
    """Return a user's name."""
    if number is None:
        return "an unknown user"
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return "user %d" % number


def argv(pid: int) -> List[str]:
    """Return a command line, secrets not masked yet."""
    words = text("%d/cmdline" % pid)
    return words.rstrip("\0").split("\0") if words else []


def command(pid: int) -> str:
    """Return a command line as one text, secrets masked; the interpreter without its folder, which leaves room for what it runs."""
    words = mask_argv(argv(pid))
    return " ".join([*map(os.path.basename, words[:1]), *words[1:]])[:200]


def environ(pid: int) -> Optional[Dict[str, str]]:
    """Return the environment with which a process was started; None if it may not be read."""
    try:
        with open_bytes("%s/%d/environ" % (ROOT, pid)) as file:
            words = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    return {name: value for name, _, value in (word.partition("=") for word in words) if name}


def has_loaded(pid: int, library: str) -> bool:
    """Tell whether a process has mapped a library with this in its name."""
    return library in text("%d/maps" % pid)


def text(path: str) -> str:
    """Return a file of /proc; empty if it cannot be read."""
    return read(os.path.join(ROOT, path))


def read(path: str) -> str:
    """Return a file; empty if it cannot be read."""
    try:
        with open_text(path, "replace") as file:
            return file.read()
    except OSError:
        return ""
