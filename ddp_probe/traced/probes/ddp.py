"""DistributedDataParallel.__init__ and what stands in its place: arguments, placement, what was moved before, and a warning before it fails."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import card_number
from ddp_probe.traced.facts.accelerator_state import accelerators
from ddp_probe.traced.facts.describe import class_name, contents, describe, describe_mapping
from ddp_probe.traced.facts.placement import snapshot
from ddp_probe.traced.facts.process_groups import default_group, group_name
from ddp_probe.traced.facts.versions import at_least
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe

if TYPE_CHECKING:
    from ddp_probe.shared.rank_info import RankInfo


def about_to_fail(event: schema.Wrap) -> str:
    """Say what is wrong with where a model is, or with its device_ids, in the order in which DDP checks them; else nothing."""
    held, asked = event.placement, event.device_ids
    if held is None or not held.devices:
        return ""
    devices = sorted(held.devices)
    types = {device.partition(":")[0] for device in devices}
    if len(types) > 1:
        name = held.off_majority[0].name if held.off_majority else "one of them"
        return "the parameters are on %s (%s is not on %s); the wrap is about to fail" % (" and ".join(devices), name, held.majority)
    if not asked:
        return ""
    if types == {"cpu"} or len(devices) > 1:
        return "the parameters are on %s and device_ids is %s; the wrap is about to fail" % (" and ".join(devices), _joined(asked))
    return _fails_later(devices[0], asked)


def _fails_later(device: str, asked: List[Union[int, str]]) -> str:
    if len(asked) == 1 and type(asked[0]) is int and asked[0] != card_number(device):
        return "the parameters are on %s and device_ids is %s; the wrap succeeds and the first step fails" % (device, _joined(asked))
    # torch before 2.1 looks for a CUDA stream of that number whatever the device is.
    if device.partition(":")[0] != "cuda" and not at_least("torch", 2, 1):
        return "the parameters are on %s and this torch takes device_ids, %s here, for CUDA only; the first step fails" % (device, _joined(asked))
    return ""


def alone(event: schema.WrapModel, rank_info: "RankInfo") -> str:
    """Say that this process trains without the others, or nothing."""
    if event.distributed or (rank_info.world_size or 1) < 2:
        return ""
    return "launcher is '%s', so %d processes each train alone" % (event.launcher or "none", rank_info.world_size or 0)


def _joined(ids: List[Union[int, str]]) -> str:
    return "[%s]" % ", ".join([str(number) for number in ids])


# DistributedDataParallel.__init__ and what stands in its place: arguments, placement, what was moved and set before.

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

    def before(self, call: Call) -> None:
        """Warn once the begin event is on disk; a remedy at this call reports what it does itself."""
        super().before(call)
        event: Any = call.note.event if isinstance(call.note, Begun) else None
        if event is not None and event.warning and not call.overridable:
            self.session.warn(event.warning, event)

    def begin(self, call: Call) -> schema.Wrap:
        """Record every argument and where every parameter is; bound by signature, since the order changed between torches."""
        given = call.arguments()
        model = given.get("module")
        placement, rows = snapshot(model)
        self.session.recorder.model(placement.digest, rows)
        event = schema.Wrap(
            wrapper=_wrapper(call),
            model=class_name(model),
            device_ids=cards(given.get("device_ids")),
            output_device=_text(given.get("output_device")),
            group=group_name(given.get("process_group")) or "default",
            backend=default_group()[0],
            keywords=_keywords(given),
            placement=placement,
            accelerators=accelerators(),
            last_move=self.session.last("module_move"),
            last_set_device=self.session.last("set_device"),
        )
        event.warning = about_to_fail(event)
        return event

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Wrap]:
        """Record the device_ids that the wrapper has settled on."""
        wrapper = call.instance if call.instance is not None else result
        return schema.Wrap(wrapper=_wrapper(call), device_ids=cards(contents(wrapper).get("device_ids")))


def _wrapper(call: Call) -> str:
    return class_name(call.instance) if call.instance is not None else str(call.target)


def cards(ids: Any) -> Optional[List[Union[int, str]]]:
    """Return device_ids as the numbers of cards; what is not a list of some kind is left out."""
    return [card_number(describe(device_id)) for device_id in ids[:_MOST]] if type(ids) in (list, tuple, range) else None


def _text(value: Any) -> str:
    return "" if value is None else describe(value)


def _keywords(given: Dict[str, Any]) -> Dict[str, str]:
    return describe_mapping({name: value for name, value in given.items() if name not in _OWN})


PROBE = Wrap
