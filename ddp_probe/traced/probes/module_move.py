"""Module.to, cuda, cpu: where a model was sent, from which line, and where its parameters are afterwards."""

from typing import Any, Optional, Tuple

from ddp_probe.shared import schema
from ddp_probe.traced.facts.describe import class_name, describe
from ddp_probe.traced.facts.placement import devices_only
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe


class ModuleMove(Probe):
    """Records the outermost move only; a move that a move calls is part of it."""

    name = "module_move"
    targets = (
        "torch.nn.modules.module:Module.to",
        "torch.nn.modules.module:Module.cuda",
        "torch.nn.modules.module:Module.cpu",
        "torch.nn.modules.module:Module.xpu",
    )
    events = (schema.ModuleMove,)
    outermost = True
    cost = "Two lines and one pass over the parameters' devices per outermost call."

    def begin(self, call: Call) -> schema.ModuleMove:
        """Record the destination."""
        method = call.target.qualname.rpartition(".")[2]
        destination, dtype = _destination(method, call)
        return schema.ModuleMove(method=method, model=class_name(call.instance), destination=destination, dtype=dtype)

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.ModuleMove]:
        """Record where the parameters are now, and remember the move for the wrap that follows."""
        assert isinstance(begun.event, schema.ModuleMove)
        site = begun.event.site
        where = " at %s:%d" % (site.file, site.line) if site is not None else ""
        if begun.event.destination:
            self.last = "%s.%s(%s)%s" % (begun.event.model, begun.event.method, begun.event.destination, where)
        return schema.ModuleMove(devices=devices_only(call.instance))


def _destination(method: str, call: Call) -> Tuple[str, str]:
    """Find device and dtype among the arguments: Module.to takes them in three shapes."""
    destination = dtype = ""
    for name, value in [*(("", value) for value in call.args), *call.kwargs.items()]:
        kind = class_name(value).rpartition(".")[2]
        if kind == "dtype" or name == "dtype":
            dtype = describe(value)
        elif kind in ("device", "str", "int") or name == "device":
            destination = destination or describe(value)
        elif name == "tensor" or (name == "" and kind not in ("bool", "NoneType")):
            destination = destination or "that of " + describe(value)
    if method != "to":
        destination = destination or (method if method == "cpu" else method + " (current)")
    return destination, dtype


PROBE = ModuleMove
