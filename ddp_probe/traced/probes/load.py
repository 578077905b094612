"""What reads a checkpoint: which file in which state, asked for with what, from which line."""

import os
from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.shared.ours import traceback_of
from ddp_probe.traced.facts import checkpoint_file
from ddp_probe.traced.facts.call_site import is_called_by
from ddp_probe.traced.facts.describe import describe
from ddp_probe.traced.facts.versions import at_least
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe

_TORCH = "torch.serialization.load"
_SAFETENSORS = "safetensors.torch.load_file"


class Load(Probe):
    """Looks at the file's stat before, and into it once the load itself has opened and closed it; never unpickles.

    To open and close a file drops the POSIX locks that the job holds on it, so nothing is opened by its path before. That gives up one thing: of a
    load that never returns only size, time and inode are known. What reads through safetensors.safe_open, a class of Rust, is not seen.
    """

    name = "load"
    targets = ("torch.serialization:load",)
    optional = ("safetensors.torch:load_file", "torch.distributed.checkpoint.state_dict_loader:load")
    events = (schema.Load,)
    states = True
    cost = "Two stats and three reads of at most 64 KiB per load, and one of at most 1 MiB if no storage's device is named in the first of them."

    def begin(self, call: Call) -> Optional[schema.Load]:
        """Record the file as it is now, and the arguments."""
        if is_called_by("torch.storage", "_load_from_bytes"):
            return None  # A tensor in a pickle, be it from another rank, a queue or a copy: no checkpoint.
        given = call.arguments()
        if call.label != _TORCH:
            return schema.Load(by=call.label, file=checkpoint_file.stat_of(_source(call)), map_location=_map_location(given.get("device")))
        weights_only = given.get("weights_only")
        return schema.Load(
            file=checkpoint_file.stat_of(given.get("f")),
            map_location=_map_location(given.get("map_location")),
            weights_only=weights_only if type(weights_only) is bool else None,
            weights_only_effective=_effective(weights_only, call),
            mmap=given.get("mmap") if type(given.get("mmap")) is bool else None,
        )

    def end(self, call: Call, begun: Begun, result: Any) -> schema.Load:
        """Record what the file asked for, and whether it has changed meanwhile."""
        return self._after(call, begun, True)

    def error(self, call: Call, begun: Begun, exc: BaseException) -> schema.Load:
        """Record the same after a failure: a file that has grown since begin was being written."""
        return self._after(call, begun, _opened(exc) if call.label == _TORCH else not issubclass(type(exc), OSError))

    def _after(self, call: Call, begun: Begun, opened: bool) -> schema.Load:
        given = _source(call)
        assert isinstance(begun.event, schema.Load)
        event = schema.Load()
        if opened or checkpoint_file.path_of(given) is None:
            seen, event.locations = checkpoint_file.look(given), checkpoint_file.locations(given)
        else:
            seen = checkpoint_file.stat_of(given)
        if _changed(begun.event.file, seen):
            event.file_after = seen
        elif opened:
            event.file = seen
        return event


def _source(call: Call) -> Any:
    """Return the path or the stream that is read."""
    given = call.arguments()
    if call.label == _TORCH:
        return given.get("f")
    return checkpoint_file.storage_path(given.get("filename" if call.label == _SAFETENSORS else "checkpoint_id"), given.get("storage_reader"))


def _opened(exc: BaseException) -> bool:
    """Tell whether torch.load had opened the file before it failed: by the variable that it keeps it in, from torch 1.12 to 2.13."""
    step = traceback_of(exc)
    while step is not None:
        frame = step.tb_frame
        if frame.f_globals.get("__name__") == "torch.serialization" and "opened_file" in frame.f_code.co_varnames:
            return "opened_file" in frame.f_locals
        step = step.tb_next
    return False


def _changed(before: Optional[schema.CheckpointFile], after: schema.CheckpointFile) -> bool:
    def key(file: schema.CheckpointFile) -> Any:
        return file.size, file.mtime, file.inode

    if before is None or key(before) != key(after):
        return True
    return before.complete is not None and before.complete != after.complete


def _map_location(value: Any) -> str:
    return "" if value is None else describe(value)


def _effective(given: Any, call: Call) -> Optional[bool]:
    """Say what this torch makes of weights_only: its default turned True in 2.6; two variables override it."""
    if "weights_only" not in call.defaults():
        return None  # torch before 1.13 knows no such thing
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true"):
        return True
    if type(given) is bool:
        return given
    if os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true"):
        return False
    default = call.defaults()["weights_only"]
    return default if type(default) is bool else _default_of_none(call)


def _default_of_none(call: Call) -> bool:
    """In torch 2.6 and later the default None stands for True unless a pickle_module is given; before that for False."""
    return at_least("torch", 2, 6) and call.arguments().get("pickle_module") is None


PROBE = Load
