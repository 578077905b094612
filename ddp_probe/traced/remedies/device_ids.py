"""device_ids for a module that does not take them."""

from typing import Any, Optional

from ddp_probe.traced.facts.placement import devices_only
from ddp_probe.traced.facts.versions import at_least
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy


class DeviceIds(Remedy):
    """device_ids and output_device are dropped if the module is on the CPU, or torch takes them only for CUDA."""

    word = "device-ids"
    order = 60
    targets = ("torch.nn.parallel.distributed:DistributedDataParallel.__init__",)
    when = "DistributedDataParallel would raise, now or in the first forward."
    for_good = "Pass device_ids only for CUDA: device_ids=[local_rank] if device.type == 'cuda' else None."

    def prepare(self, call: Call) -> Optional[Change]:
        """Drop both; a module on several devices is left to the job, which may have forgotten to move a part of it."""
        given = call.arguments()
        ids, output = given.get("device_ids"), given.get("output_device")
        if not _is_given(ids) and not _is_given(output):  # torch checks no more than that
            return None
        places = devices_only(given.get("module"))
        kinds = {place.partition(":")[0] for place in places}
        if kinds != {"cpu"} and (len(places) != 1 or "cuda" in kinds or _takes_any()):
            if len(kinds) > 1:
                self.declined(call, "the parameters are on %s, and dropping device_ids would not help" % ", ".join(sorted(kinds)))
            return None
        because = "the module is on cpu" if kinds == {"cpu"} else "this torch takes device_ids only for CUDA"
        dropped = {"device_ids": None, "output_device": None}
        return Change({"device_ids": ids, "output_device": output}, dropped, because, arguments=dropped)


def _is_given(value: Any) -> bool:
    """Return whether torch takes this as given; a list or number of the job's class is not asked."""
    kind = type(value)
    if issubclass(kind, (list, tuple)):
        return (list if issubclass(kind, list) else tuple).__len__(value) > 0
    return int.__bool__(value) if issubclass(kind, int) else value is not None


def _takes_any() -> bool:
    """Tell whether the forward of this torch finds a stream for the cards of any vendor."""
    return at_least("torch", 2, 1)


REMEDY: Any = DeviceIds
