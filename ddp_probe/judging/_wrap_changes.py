"""What to change in the wrap of a model: its device, the wrapper's device_ids, mmengine's model_wrapper_cfg."""

import os
from typing import List, Optional

from ddp_probe.judging import _wraps, change
from ddp_probe.shared.schema import Site

_WRAPPER = "MMDistributedDataParallel"
_CFG = "dict(type='%s', device_ids=None)" % _WRAPPER
_LOCAL = "int(os.environ['LOCAL_RANK'])"


def move_to_card(wrapped: _wraps.Wrapped, kind: str) -> change.Change:
    """Move the whole model to this rank's card in the call that wraps it."""
    device = "torch.device('%s', %s)" % (kind, _LOCAL)
    if _by_a_library(wrapped):
        return [change.Lines(wrapped.call.site, ("model.to(%s)" % device,), ("os", "torch"), call="by a library")]
    return [change.Argument(wrapped.call.site, change.WRAP, "module", "$was.to(%s)" % device, 0, was="the model", imports=("os", "torch"))]


def only_on_a_card(wrapped: _wraps.Wrapped) -> change.Change:
    """Give device_ids to models on a card only: another run of the program may have cards."""
    if _wraps.runner(wrapped) is not None:
        return _in_the_config(wrapped)
    value = "$was if $device.type != 'cpu' else None"
    return [
        change.Argument(wrapped.call.site, change.WRAP, "device_ids", value, 1, False, "[local_rank]"),
        change.Argument(wrapped.call.site, change.WRAP, "output_device", value, 2, False, "local_rank"),
    ]


def without_ids(wrapped: _wraps.Wrapped) -> change.Change:
    """Leave device_ids out."""
    if _wraps.runner(wrapped) is not None:
        return _in_the_config(wrapped)
    site = wrapped.call.site
    return [change.Argument(site, change.WRAP, "device_ids", "", 1), change.Argument(site, change.WRAP, "output_device", "", 2)]


def _in_the_config(wrapped: _wraps.Wrapped) -> change.Change:
    """The Runner reads model_wrapper_cfg from its configuration: a file, the argument of from_cfg, or its own argument cfg."""
    outer, site = _wraps.runner(wrapped), wrapped.call.site
    config = _config_file(wrapped)
    given = outer.begin.wrapper_cfg if outer is not None else {}
    if given:
        where = Site(config, 1) if config else site
        return [change.Key(where, _WRAPPER, "device_ids", "None"), "Left out, wrap_model makes it [LOCAL_RANK]."]
    if config:
        return [change.ConfigLine(config, "model_wrapper_cfg = %s" % _CFG)]
    if _from_cfg(wrapped):
        line = "$first['model_wrapper_cfg'] = %s" % _CFG
        return [change.Lines(site, (line,), call=change.RUNNER, first="cfg"), "In a config file it is: model_wrapper_cfg = %s." % _CFG]
    value = "dict(model_wrapper_cfg=%s)" % _CFG
    merged = "dict($was, model_wrapper_cfg=%s)" % _CFG
    return [change.Argument(site, change.RUNNER, "cfg", value, replace=merged), "If the Runner is given a cfg already, add model_wrapper_cfg to it."]


def _from_cfg(wrapped: _wraps.Wrapped) -> bool:
    outer = _wraps.runner(wrapped)
    return outer is not None and any(frame.function.endswith("from_cfg") for frame in outer.begin.through)


def _config_file(wrapped: _wraps.Wrapped) -> str:
    """Return the config file that the command names, for a Runner that is made from one."""
    started = wrapped.process.started
    if not _from_cfg(wrapped):
        return ""
    named: List[str] = [part for part in _arguments(started.argv) if part.endswith(".py") and not part.startswith("-")]
    return os.path.join(started.cwd, named[0]) if named else ""


def _arguments(argv: List[str]) -> List[str]:
    """Return what the program was given: what comes after it."""
    program: Optional[int] = next((number for number, part in enumerate(argv) if number and part.endswith(".py")), None)
    return argv[program + 1 :] if program is not None else argv[1:]


def _by_a_library(wrapped: _wraps.Wrapped) -> bool:
    return any(frame.function.rpartition(".")[2] != "__init__" for frame in wrapped.call.begin.through)
