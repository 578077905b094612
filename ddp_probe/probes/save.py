"""torch.save: where to, and whether a reader can meet half of it."""

import io
import os
from typing import Any, Optional

from ddp_probe import schema
from ddp_probe.facts.checkpoint import path_of
from ddp_probe.facts.secrets import masked
from ddp_probe.ours import ours
from ddp_probe.patching import Call
from ddp_probe.probes._probe import Begun, Probe

_FILES = (io.BufferedWriter, io.BufferedRandom, io.FileIO)


class Save(Probe):
    """Records the path before and its size after; torch.save to a path is not atomic."""

    name = "save"
    targets = ("torch.serialization:save",)
    events = (schema.Save,)
    cost = "Two stats per save."

    def begin(self, call: Call) -> schema.Save:
        """Record the path and what stands there now."""
        path = _path(call.arguments().get("f"))
        if path is None:
            return schema.Save(path="<stream>")
        state = _stat(path)
        return schema.Save(path=masked(path, 1000), existed=state is not None, inode=state.st_ino if state else None)

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Save]:
        """Record the size; the same inode as before means that the file was written in place."""
        path = _path(call.arguments().get("f"))
        state = _stat(path) if path is not None else None
        if state is None:
            return None
        assert isinstance(begun.event, schema.Save)
        replaced = begun.event.inode is not None and begun.event.inode != state.st_ino
        return schema.Save(size=state.st_size, inode=state.st_ino, in_place=not replaced)

    def failed(self, call: Call, begun: Begun, exc: BaseException) -> Optional[schema.Save]:
        """Record what a failed save has left behind."""
        return self.end(call, begun, None)


def _path(target: Any) -> Optional[str]:
    """Return the path, or the name of a real file; what the job has made itself is not asked, for that runs its code."""
    if type(target) in _FILES:
        return target.name if type(target.name) is str else None
    return path_of(target)


def _stat(path: str) -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except ours(OSError, ValueError):  # a path with a null byte, or with letters that no file name can have
        return None


PROBE = Save
