"""set_device of torch.cuda, torch.accelerator and the vendors' modules: which card this rank has asked for, and what came of it."""

from typing import Any, Optional

from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import set_device_targets
from ddp_probe.traced.facts.call_site import caller_package
from ddp_probe.traced.facts.describe import describe
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe

_TORCH = "torch.cuda:set_device"


class SetDevice(Probe):
    """Records the argument, and the exception also where the caller swallows it."""

    name = "set_device"
    targets = (_TORCH,)
    optional = tuple(target for target in set_device_targets() if target != _TORCH)
    events = (schema.SetDevice,)
    cost = "Two lines per call."

    def begin(self, call: Call) -> Optional[schema.SetDevice]:
        """Record which card is asked for; a library that calls itself, as in a device context, decides nothing."""
        if caller_package() == call.target.module.split(".", 1)[0]:
            return None
        given = call.args[0] if call.args else call.kwargs.get("device")
        return schema.SetDevice(target=str(call.target), device=describe(given))

    def end(self, call: Call, begun: Begun, result: Any) -> None:
        """Remember it for the wrap that follows."""
        assert isinstance(begun.event, schema.SetDevice)
        site = begun.event.site
        where = " at %s:%d" % (site.file, site.line) if site is not None else ""
        self.last = "%s(%s)%s" % (begun.event.target, begun.event.device, where)


PROBE = SetDevice
