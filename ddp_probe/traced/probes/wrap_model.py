"""mmengine's Runner.wrap_model and its strategies': what it assumes, the model's devices, and the result."""

from typing import Any, Optional, Tuple

from ddp_probe.shared import schema
from ddp_probe.traced.facts.accelerator_state import accelerators, mmengine_device
from ddp_probe.traced.facts.describe import class_name, contents, describe_mapping
from ddp_probe.traced.facts.placement import snapshot
from ddp_probe.traced.facts.process_groups import default_group
from ddp_probe.traced.patching import Call
from ddp_probe.traced.probes import Begun, Probe, ddp


class WrapModel(Probe):
    """Records the placement before and after; DDP.__init__ never runs when launcher is 'none', so this has to notice."""

    name = "wrap_model"
    targets = (
        "mmengine.runner.runner:Runner.wrap_model",
        "mmengine._strategy.single_device:SingleDeviceStrategy._wrap_model",
        "mmengine._strategy.distributed:DDPStrategy._wrap_model",
    )
    optional = ("mmengine._strategy.fsdp:FSDPStrategy._wrap_model", "mmengine._strategy.deepspeed:DeepSpeedStrategy._wrap_model")
    events = (schema.WrapModel,)
    outermost = True
    cost = "Two passes over the parameters, once."

    def before(self, call: Call) -> None:
        """Warn if each process is about to train alone, once the begin event is on disk."""
        super().before(call)
        event: Any = call.note.event if isinstance(call.note, Begun) else None
        text = "" if event is None else ddp.alone(event, self.session.process.rank_info)
        if text:
            self.session.warn(text, event)

    def begin(self, call: Call) -> schema.WrapModel:
        """Record the model before it is moved and wrapped."""
        model = call.arguments().get("model")
        placement, rows = snapshot(model)
        self.session.recorder.model(placement.digest, rows)
        cfg = call.arguments().get("model_wrapper_cfg", contents(call.instance).get("_model_wrapper"))
        device, because = mmengine_device()
        launcher, distributed = _believes(call.instance)
        return schema.WrapModel(
            target=str(call.target),
            launcher=launcher,
            distributed=distributed,
            wrapper_cfg=describe_mapping(cfg) if issubclass(type(cfg), dict) else {},
            get_device=device,
            get_device_because=because,
            placement=placement,
            accelerators=accelerators(),
        )

    def end(self, call: Call, begun: Begun, result: Any) -> schema.WrapModel:
        """Record what came back and where it is."""
        placement, rows = snapshot(result)
        self.session.recorder.model(placement.digest, rows)
        return schema.WrapModel(wrapper=class_name(result), device_ids=ddp.cards(contents(result).get("device_ids")), placement=placement)

    def error(self, call: Call, begun: Begun, exc: BaseException) -> schema.WrapModel:
        """Record where the model is after the move that came before the failure."""
        placement, rows = snapshot(call.arguments().get("model"))
        self.session.recorder.model(placement.digest, rows)
        return schema.WrapModel(placement=placement)


def _believes(runner: Any) -> Tuple[str, Optional[bool]]:
    """Read launcher and distributed as a runner keeps them; a strategy keeps neither and goes by the group."""
    state = contents(runner)
    launcher, distributed = state.get("_launcher"), state.get("_distributed")
    return (launcher if type(launcher) is str else ""), (distributed if type(distributed) is bool else default_group()[2] is not None)


PROBE = WrapModel
