"""torch.cuda.set_device on a host without usable CUDA."""

import os
import re
from typing import Any, Dict, Optional

from ddp_probe.traced.facts.card_to_use import Cards, cards, usable_cuda
from ddp_probe.traced.facts.failure import said
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy

_OF_NVIDIA = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")  # The last one under Windows.
# What torch says if it is built for the CPU, if it has CUDA and no driver, and if it has neither.
_NO_CUDA = re.compile(r"_cuda_setDevice|Found no NVIDIA driver|not compiled with CUDA|Cannot access accelerator device when none is available")


class SetDeviceRemedy(Remedy):
    """torch.cuda.set_device becomes the accelerator's own set_device, or nothing on a CPU run."""

    word = "set-device"
    order = 10
    targets = ("torch.cuda:set_device",)
    when = "torch.cuda.set_device raises because this host has no CUDA at all."
    for_good = "Call set_device of the accelerator's own module, and on a CPU run none."

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Set the card of the accelerator that is present; a host with NVIDIA cards has another problem, which must not be hidden."""
        if not _NO_CUDA.search(said(exc)) or usable_cuda() or [path for path in _OF_NVIDIA if os.path.exists(path)]:
            return None
        asked = {"torch.cuda.set_device": call.args[0] if call.args else call.kwargs.get("device")}
        chosen = cards()
        if chosen is None:
            return Change.answer(None, asked, {}, "this host has no CUDA and no other accelerator that the job has imported")
        index = _index(asked["torch.cuda.set_device"])
        if index is None or not 0 <= index < chosen.seen():
            self.declined(call, "%s has %d cards, and the argument names none of them" % (chosen.device_type, chosen.seen()))
            return None
        return self._set(chosen, index, asked)

    def _set(self, chosen: Cards, index: int, asked: Dict[str, Any]) -> Change:
        before = chosen.now()
        chosen.set(index)
        after = {"%s.set_device" % chosen.device_type: index}
        return Change.answer(None, asked, after, "this host has no CUDA", revert=lambda: chosen.set(before))


def _index(device: object) -> Optional[int]:
    if type(device) is int:
        return device
    index = getattr(device, "index", None)
    if type(index) is int:
        return index
    number = str(device).rpartition(":")[2]
    return int(number) if number.isdecimal() else None


REMEDY = SetDeviceRemedy
