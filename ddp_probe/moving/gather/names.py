"""Which names from another host become files: plain ones of the kinds that a run has. They are hostile input."""

import re

from ddp_probe.moving.bundle import contents
from ddp_probe.reading import flight_recorder

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}")
_FOLDERS = ("", "models")
_LONGEST = 100


def accepted(name: str) -> bool:
    """Return whether a file of a run may be kept under this name."""
    folder, _, plain = name.rpartition("/")
    if folder not in _FOLDERS or not _PLAIN.fullmatch(plain) or name.startswith("/"):
        return False
    return bool(contents.kind_of(name)) or (not folder and flight_recorder.is_dump(plain))


def of_host(host: str) -> str:
    """Return a host's name as the beginning of a file's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", ".", host)[:_LONGEST].strip(".") or "host"


def of_run(name: str) -> bool:
    """Return whether a run's name is the plain name of a folder."""
    return bool(name) and "/" not in name and "\0" not in name and name not in (".", "..")
