"""How files are opened: who may read them, which is the user alone unless somebody has said otherwise, and whether they may stay open."""

import os
import resource
import stat

from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours

_OWNER, _GROUP = 0o077, 0o027
_FEW = 256


def few_descriptors() -> bool:
    """Tell whether this process may open so few files that it would miss those that we keep open: then we keep none."""
    return 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FEW  # without a limit it is -1


def umask(directory: str) -> int:
    """Return what is taken from 0666 and 0777 for a file or folder in this place; the process's own umask narrows it further."""
    asked = settings.get(settings.UMASK)
    if asked is not None:
        return int(asked)
    # A folder with the set-group-ID bit is one that a group shares, and whoever set the bit meant its members to read what lies there.
    return _GROUP if _shared(directory) else _OWNER


def _shared(directory: str) -> bool:
    """Tell whether the nearest folder that is there belongs to a group; what is made in such a folder inherits the bit."""
    place = os.path.abspath(directory)
    while True:
        try:
            return bool(os.stat(place).st_mode & stat.S_ISGID)
        except ours(FileNotFoundError):
            parent = os.path.dirname(place)
        except ours(OSError):
            return False
        if parent == place:
            return False
        place = parent
