"""What writes a checkpoint: where to, and whether a reader can meet half of it."""

import io
import os
from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.shared.masks import masked
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.call_site import is_called_by
from ddp_probe.traced.facts.checkpoint_file import is_checkpoint, storage_path
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe

_FILES = (io.BufferedWriter, io.BufferedRandom, io.FileIO)
_TORCH, _PUT = "torch.serialization.save", "mmengine.fileio.backends.local_backend.LocalBackend.put"
_PATHS = {
    _TORCH: "f",
    _PUT: "filepath",
    "safetensors.torch.save_file": "filename",
}
"""The parameter that has the path; the others are of torch.distributed.checkpoint."""


class Save(Probe):
    """Records the path before and its size after; torch.save to a path is not atomic. mmengine saves into memory, and then puts the bytes."""

    name = "save"
    targets = ("torch.serialization:save", "mmengine.fileio.backends.local_backend:LocalBackend.put")
    optional = (
        "safetensors.torch:save_file",
        "torch.distributed.checkpoint.state_dict_saver:save",
        "torch.distributed.checkpoint.state_dict_saver:async_save",
    )
    events = (schema.Save,)
    states = True
    cost = "Two stats per save, and one of the file system if the save fails."

    def begin(self, call: Call) -> Optional[schema.Save]:
        """Record the path and what stands there now; a tensor that is pickled is not a checkpoint."""
        if _puts_something_else(call) or is_called_by("torch.storage", "__reduce__"):
            return None
        path = _path(call)
        if path is None:
            return schema.Save(path="<stream>", by=_by(call))
        state, opened = _stat(path), _is_opened(call)
        if state is None:
            return schema.Save(path=masked(path, 1000), opened=opened, existed=False, by=_by(call))
        event = schema.Save(path=masked(path, 1000), opened=opened, existed=True, by=_by(call))
        event.inode, event.size, event.mtime = state.st_ino, state.st_size, state.st_mtime
        return event

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Save]:
        """Record the size; the same inode as before means that the file was written in place."""
        path = _path(call)
        state = _stat(path) if path is not None else None
        if state is None:
            return None
        assert isinstance(begun.event, schema.Save)
        replaced = begun.event.inode is not None and begun.event.inode != state.st_ino
        return schema.Save(size=state.st_size, inode=state.st_ino, mtime=state.st_mtime, in_place=not replaced)

    def error(self, call: Call, begun: Begun, exc: BaseException) -> Optional[schema.Save]:
        """Record what a failed save has left behind, and the room on its disk."""
        event = self.end(call, begun, None) or schema.Save()
        path = _path(call)
        event.free = _free(path) if path is not None else None
        return event


def _by(call: Call) -> str:
    return "" if call.label == _TORCH else call.label


def _puts_something_else(call: Call) -> bool:
    """Tell whether a backend of mmengine writes an image or a text."""
    data = call.arguments().get("obj") if call.label == _PUT else None
    return type(data) is bytes and not is_checkpoint(data[:64], len(data))


def _path(call: Call) -> Optional[str]:
    """Return the path, or the name of a real file; what the job has made itself is not asked, for that runs its code."""
    given = call.arguments()
    parameter = _PATHS.get(call.label)
    if parameter is None:
        return storage_path(given.get("checkpoint_id"), given.get("storage_writer"))
    target: Any = given.get(parameter)
    if any(type(target) is kind for kind in _FILES):
        file = target if type(target) is io.FileIO else target.raw
        return file.name if type(file) is io.FileIO and type(file.name) is str else None
    return storage_path(target)


def _is_opened(call: Call) -> Optional[bool]:
    target: Any = call.arguments().get(_PATHS.get(call.label, ""))
    return True if any(type(target) is kind for kind in _FILES) else None


def _stat(path: str) -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except ours(OSError, ValueError):  # a path with a null byte, or with letters that no file name can have
        return None


def _free(path: str) -> Optional[int]:
    for place in (path, os.path.dirname(path) or "."):
        try:
            room = os.statvfs(place)
        except ours(OSError, ValueError):
            continue
        return room.f_bavail * room.f_frsize
    return None


PROBE = Save
