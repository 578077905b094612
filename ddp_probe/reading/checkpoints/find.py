"""Finds what the arguments of the command name: files, patterns, and the checkpoints in folders."""

import glob
import os
from typing import List

from ddp_probe.reading.checkpoints import distributed
from ddp_probe.shared.errors import UnusableError

_SUFFIXES = (".pth", ".pt", ".ckpt", ".bin", ".safetensors", ".pth.tar", ".pkl", ".npz", ".npy", ".distcp", ".index.json", ".pt2", ".th", ".model")
_MOST = 10_000


def paths(arguments: List[str]) -> List[str]:
    """Return the paths to judge, in order, each once."""
    found: List[str] = []
    for argument in arguments:
        matches = [argument] if os.path.lexists(argument) else sorted(glob.glob(argument, recursive=True))
        if not matches:
            raise UnusableError(
                what="There is no %s." % argument, why="No file, folder or pattern matches.", what_to_do="Name the checkpoint's path."
            )
        for match in matches:
            found.extend(_inside(match) if os.path.isdir(match) and not distributed.is_one(match) else [match])
    return list(dict.fromkeys(found))


def _inside(folder: str) -> List[str]:
    """Return the checkpoints in a folder and the folders below; links to folders are not followed."""
    found: List[str] = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = [name for name in folders if distributed.is_one(os.path.join(at, name))]
        folders[:] = [name for name in folders if name not in inner]
        found.extend(os.path.join(at, name) for name in [*inner, *sorted(name for name in files if name.endswith(_SUFFIXES))])
        if len(found) > _MOST:
            raise UnusableError(what="%s holds more than %d checkpoints." % (folder, _MOST), why="", what_to_do="Name fewer of them.")
    if not found:
        raise UnusableError(
            what="%s holds no checkpoint." % folder,
            why="No file in it or below has a name such as %s." % ", ".join("*" + suffix for suffix in _SUFFIXES[:5]),
            what_to_do="Name the file itself.",
        )
    return found
