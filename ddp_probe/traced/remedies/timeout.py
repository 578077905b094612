"""The process group's timeout."""

from datetime import timedelta
from typing import Optional

from ddp_probe.shared import settings
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies._remedy import Remedy


class Timeout(Remedy):
    """The timeout of the process group comes from DDP_PROBE_TIMEOUT."""

    word = "timeout"
    order = 110
    targets = ("torch.distributed.distributed_c10d:init_process_group",)
    when = "DDP_PROBE_TIMEOUT is set."
    for_good = "init_process_group(timeout=datetime.timedelta(seconds=…)), or env_cfg.dist_cfg.timeout of an mmengine config."

    def prepare(self, call: Call) -> Optional[Change]:
        """Set it, whatever the job asked for."""
        seconds = settings.get(settings.TIMEOUT)
        if seconds is None:
            return None
        before = call.arguments().get("timeout")
        wanted = timedelta(seconds=seconds)
        if before == wanted:
            return None
        return Change({"timeout": str(before)}, {"timeout": str(wanted)}, "DDP_PROBE_TIMEOUT asks for it", arguments={"timeout": wanted})


REMEDY = Timeout
