"""A model that is still on the CPU when it is wrapped, on a host with cards."""

import gc
import sys
from typing import Any, Optional, Set

from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.card_to_use import Cards, cards, no_card, own_index, usable_cuda, wanted
from ddp_probe.traced.facts.describe import contents
from ddp_probe.traced.facts.placement import devices_only, parameters
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy


class MoveModel(Remedy):
    """The module is moved to this rank's card before it is wrapped."""

    word = "move-model"
    order = 50
    targets = ("torch.nn.parallel.distributed:DistributedDataParallel.__init__",)
    when = "An accelerator is present, the process group can carry its tensors, and all parameters are on the CPU."
    for_good = "model.to(device) after the last layer is made and before DistributedDataParallel and the optimizer."

    def prepare(self, call: Call) -> Optional[Change]:
        """Move in place, as Module.to does; the wrapped module stays the same object."""
        module = call.arguments().get("module")
        if module is None or set(devices_only(module)) != {"cpu"}:
            return None
        chosen = cards() or _cuda()
        if chosen is None or not _carried(call, chosen):
            return None
        index = own_index(self.session, chosen)
        if index is None:
            self.declined(call, no_card(chosen))
            return None
        if _in_an_optimizer(module):
            self.declined(call, "an optimizer already holds these parameters, and moving them may leave it with the old ones")
            return None
        target = "%s:%d" % (chosen.device_type, index)
        if not self._moved(call, module, target):
            return None
        because = "the model had not been moved to a card"
        return Change({"parameters on": "cpu"}, {"parameters on": target}, because, revert=lambda: module.to("cpu"))

    def _moved(self, call: Call, module: Any, target: str) -> bool:
        """Move; if the card takes only a part of the model, move that part back."""
        try:
            module.to(target)
        except ours(Exception) as exc:
            module.to("cpu")
            self.declined(call, "%s does not take the model: %s" % (target, type(exc).__name__))
            return False
        return True


def _cuda() -> Optional[Cards]:
    return Cards("cuda", sys.modules["torch"].cuda, ["nccl"]) if wanted() in ("", "cuda") and usable_cuda() else None


def _carried(call: Call, chosen: Cards) -> bool:
    """Tell whether the group moves tensors of these cards: a gloo group may be an intended CPU run."""
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    if not c10d.is_initialized():
        return False
    return str(c10d.get_backend(call.arguments().get("process_group"))).lower() in chosen.backends


def _in_an_optimizer(module: Any) -> bool:
    kind: Any = sys.modules["torch"].optim.Optimizer
    own: Set[int] = {id(parameter) for parameter in parameters(module)}
    for optimizer in gc.get_objects():
        if issubclass(type(optimizer), kind):
            for group in contents(optimizer).get("param_groups", ()):
                if any(id(parameter) in own for parameter in group["params"]):
                    return True
    return False


REMEDY = MoveModel
