"""Ranks of one host that warn alike say it once: the first that makes the empty file named after the text speaks, and nobody waits for anybody.

Two texts are alike if they are the same or differ in the ranks' own numbers alone. In doubt it is said; each rank has its warning in its own file.
"""

import os
import re
import stat
from hashlib import blake2b
from typing import Any, Dict

from ddp_probe.shared.ours import ours, suppress

from ._file import make_folder
from ._modes import umask
from .stderr import who

# No line's number, no part of a name such as 1.weight, and nothing in a path.
_NUMBER = re.compile(r"\S*/\S*|(?<![\w.])(?<!\.py:)(?<!>:)\d+(?![\w.]*\w)")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTE = " (said once for all ranks of this host that see the same)"


def line(text: str, directory: str, envelope: Dict[str, Any]) -> str:
    """Return what this rank says of a warning, with whom it speaks for; empty if another rank has spoken."""
    if envelope.get("rank") is None or (envelope.get("world_size") or 1) < 2:
        return text
    name = who(envelope["rank"])
    named = text.startswith(name)
    said = text[len(name) :] if named else text
    if not _is_first(os.path.join(directory, "said"), said, envelope):
        return ""
    return name + _NOTE + said if named else text


def _is_first(folder: str, said: str, envelope: Dict[str, Any]) -> bool:
    """Tell whether nobody has said this yet: neither these very words, device_ids [0] on each rank, nor the like of them, [N] on rank N."""
    own = {str(envelope[name]): name for name in ("local_rank", "rank") if envelope.get(name) is not None}
    try:
        make_folder(folder)
        words = os.path.join(folder, _digest(said, envelope))
        alike = os.path.join(folder, _digest(_NUMBER.sub(lambda found: own.get(found.group(), found.group()), said), envelope))
    except ours(OSError):
        return True
    if os.path.lexists(alike) or not _take(words):
        return False
    if alike == words or _take(alike):
        return True
    with suppress(OSError):  # a rank that is not like these two may have to say these words
        os.unlink(words)
    return False


def _take(path: str) -> bool:
    try:
        os.close(os.open(path, _CREATE, 0o666 & ~umask(os.path.dirname(path))))
    except ours(FileExistsError):
        return False
    except ours(OSError):
        return True
    return True


def _digest(said: str, envelope: Dict[str, Any]) -> str:
    """Name what is said, by which host, to whom, and since which restart of the ranks."""
    told = (said, str(envelope.get("host")), _destination(), os.environ.get("TORCHELASTIC_RESTART_COUNT", ""))
    return blake2b("\n".join(told).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _destination() -> str:
    """Name stderr's file: each log gets its line, and a rank that writes to /dev/null claims none. Pipes of all ranks lead to one launcher."""
    seen = os.fstat(2)
    return "" if stat.S_ISFIFO(seen.st_mode) or stat.S_ISSOCK(seen.st_mode) else "%d.%d" % (seen.st_dev, seen.st_ino)
