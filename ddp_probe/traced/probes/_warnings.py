"""What goes to stderr: a placement that is about to fail, or that will fail later and say nothing."""

from typing import TYPE_CHECKING, List, Optional

from ddp_probe.shared import schema
from ddp_probe.traced.facts.versions import at_least

if TYPE_CHECKING:
    from ddp_probe.shared.rank_info import RankInfo


def placement(event: schema.Wrap) -> str:
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


def _fails_later(device: str, asked: List[str]) -> str:
    if len(asked) == 1 and _index(asked[0]) not in (None, _index(device)):
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


def _index(device: str) -> Optional[int]:
    """Return the card's number in 'cuda:1' or '1'; None if it has none."""
    digits = device.rpartition(":")[2]
    return int(digits) if digits.isdecimal() else None


def _joined(items: List[str]) -> str:
    return "[%s]" % ", ".join(items)
