"""mmengine's get_device(), which knows only some accelerators, and the communication device of its collectives."""

import sys
from typing import Any, List, Optional

from ddp_probe.traced.facts.card_to_use import Cards, cards, no_card, own_index
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy


class MMEngineDevice(Remedy):
    """get_device() and get_comm_device() answer the accelerator that is present if mmengine does not know it and says cpu."""

    word = "mmengine-device"
    order = 40
    targets = ("mmengine.device.utils:get_device", "mmengine.dist.utils:get_comm_device")
    when = "mmengine answers cpu although the job has imported a plugin whose cards are present."
    for_good = "import mmengine.device.utils; mmengine.device.utils.DEVICE = 'gcu' before the Runner is built."

    def settled(self, call: Call, result: Any) -> Optional[Change]:
        """Look at mmengine's answer; only cpu is corrected, and a backend of CPUs keeps its device."""
        if getattr(result, "type", result) != "cpu":
            return None
        chosen = cards()
        if chosen is None:
            return None
        if call.target.qualname == "get_comm_device":
            return self._communication(call, chosen)
        if _importing():  # For a default argument of mmengine's own; the job has not had a chance to set its card yet.
            because = "a module asks while it is imported, and mmengine does not know %s" % chosen.device_type
            before, after = {"get_device()": "cpu"}, {"get_device()": chosen.device_type}
            return Change.answer(chosen.device_type, before, after, because, precaution=True)
        return self._device(call, chosen)

    def _device(self, call: Call, chosen: Cards) -> Optional[Change]:
        """Answer the type of the device, as mmengine does for those it knows; the current card says which one."""
        index = own_index(self.session, chosen)
        if index is None:
            self.declined(call, no_card(chosen))
            return None
        before, after = chosen.now(), {"get_device()": chosen.device_type}
        if before != index:
            chosen.set(index)
            after["current card"] = "%s:%d" % (chosen.device_type, index)
        because = "mmengine does not know %s" % chosen.device_type
        return Change.answer(chosen.device_type, {"get_device()": "cpu"}, after, because, revert=lambda: chosen.set(before))

    def _communication(self, call: Call, chosen: Cards) -> Optional[Change]:
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        if not c10d.is_initialized():
            return None
        backend = str(c10d.get_backend(call.arguments().get("group"))).lower()
        if backend not in chosen.backends or "cpu" in _carries(c10d, backend):
            return None
        device = sys.modules["torch"].device(chosen.device_type, chosen.now())
        because = "%s carries %s tensors" % (backend, chosen.device_type)
        return Change.answer(device, {"get_comm_device()": "cpu"}, {"get_comm_device()": str(device)}, because)


def _carries(c10d: Any, backend: str) -> List[str]:
    """Return the devices whose tensors a backend says it carries. Torch before 2.0 has no such table; a vendor's backend is for its cards there."""
    table = getattr(c10d.Backend, "backend_capability", {})
    return list(table.get(backend, ())) if type(table) is dict else []


def _importing() -> bool:
    """Tell whether this call is made during the import of a module."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


REMEDY = MMEngineDevice
