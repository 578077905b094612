"""torch.cuda.set_device on a host without usable CUDA."""

import os
import re
from typing import Optional

from ddp_probe.patching import Call
from ddp_probe.patching.override import Change
from ddp_probe.remedies._card import cards, usable_cuda
from ddp_probe.remedies._remedy import Remedy

# torch for CPU; with CUDA and no driver; with neither.
_OF_NVIDIA = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")  # the last one under Windows
_NO_CUDA = re.compile(r"_cuda_setDevice|Found no NVIDIA driver|not compiled with CUDA|Cannot access accelerator device when none is available")


class SetDevice(Remedy):
    """torch.cuda.set_device becomes the accelerator's own set_device, or nothing on a CPU run."""

    name = "fix.set-device"
    targets = ("torch.cuda:set_device",)
    when = "torch.cuda.set_device raises because there is no CUDA at all on this host."
    for_good = "Call set_device of the accelerator's own module, and on a CPU run none."

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Set the card of the accelerator that is there; a host with cards of NVIDIA has another problem, which is not hidden."""
        if not _NO_CUDA.search(str(exc)) or usable_cuda() or any(map(os.path.exists, _OF_NVIDIA)):
            return None
        asked = {"torch.cuda.set_device": call.args[0] if call.args else call.kwargs.get("device")}
        found = cards()
        if found is None:
            self.applied(call, asked, {}, "this host has no CUDA and no other accelerator that the job has imported")
            return Change.to(None)
        index = _index(asked["torch.cuda.set_device"])
        if index is None or not 0 <= index < found.seen():
            self.declined(call, "%s has %d cards, and the argument names none of them" % (found.device_type, found.seen()))
            return None
        found.set(index)
        self.applied(call, asked, {"%s.set_device" % found.device_type: index}, "this host has no CUDA")
        return Change.to(None)


def _index(device: object) -> Optional[int]:
    if type(device) is int:
        return device
    index = getattr(device, "index", None)
    if type(index) is int:
        return index
    number = str(device).rpartition(":")[2]
    return int(number) if number.isdecimal() else None


REMEDY = SetDevice
