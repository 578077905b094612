"""DistributedDataParallel.__init__ and what stands in its place: arguments, placement, what was moved and set before."""

from typing import Any, Dict, List, Optional

from ddp_probe.shared import schema
from ddp_probe.traced.facts.accelerator_state import accelerators
from ddp_probe.traced.facts.describe import class_name, describe, describe_mapping
from ddp_probe.traced.facts.groups import default_group, group_name
from ddp_probe.traced.facts.loaded import contents
from ddp_probe.traced.facts.placement import snapshot
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import _warnings
from ddp_probe.traced.probes._probe import Begun, Probe

_MOST = 64
_OWN = ("module", "device_ids", "output_device", "process_group")


class Wrap(Probe):
    """Records the model's placement before it is wrapped, and warns of what is about to fail."""

    name = "ddp"
    targets = (
        "torch.nn.parallel.distributed:DistributedDataParallel.__init__",
        "torch.distributed.fsdp.fully_sharded_data_parallel:FullyShardedDataParallel.__init__",
        "mmengine.model.wrappers.seperate_distributed:MMSeparateDistributedDataParallel.__init__",
    )
    optional = ("torch.distributed.fsdp._fully_shard._fully_shard:fully_shard",)
    events = (schema.Wrap,)
    states = True
    cost = "One pass over the parameters, once per wrap."

    def begin(self, call: Call) -> schema.Wrap:
        """Record every argument and where every parameter is; bound by signature, since the order changed between torches."""
        given = call.arguments()
        model = given.get("module")
        placement, rows = snapshot(model)
        self.session.recorder.model(placement.digest, rows)
        event = schema.Wrap(
            wrapper=_wrapper(call),
            model=class_name(model),
            device_ids=_listed(given.get("device_ids")),
            output_device=_text(given.get("output_device")),
            group=group_name(given.get("process_group")) or "default",
            backend=default_group()[0],
            keywords=_keywords(given),
            placement=placement,
            accelerators=accelerators(),
            last_move=self.session.last("module_move"),
            last_set_device=self.session.last("set_device"),
        )
        event.warning = _warnings.placement(event)
        return event

    def began(self, call: Call, begun: Begun) -> None:
        """Say the warning, now that the begin event is on disk; a remedy at this call says itself what it does."""
        assert isinstance(begun.event, schema.Wrap)
        if begun.event.warning and not call.overridable:
            self.session.warn(begun.event.warning, begun.event)

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Wrap]:
        """Record the device_ids that the wrapper has settled on."""
        wrapper = call.instance if call.instance is not None else result
        return schema.Wrap(wrapper=_wrapper(call), device_ids=_listed(contents(wrapper).get("device_ids")))


def _wrapper(call: Call) -> str:
    return class_name(call.instance) if call.instance is not None else str(call.target)


def _listed(ids: Any) -> Optional[List[str]]:
    return [describe(each) for each in ids[:_MOST]] if type(ids) in (list, tuple, range) else None


def _text(value: Any) -> str:
    return "" if value is None else describe(value)


def _keywords(given: Dict[str, Any]) -> Dict[str, str]:
    return describe_mapping({name: value for name, value in given.items() if name not in _OWN})


PROBE = Wrap
