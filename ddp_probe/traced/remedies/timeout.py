"""The process group's timeout."""

from datetime import timedelta
from typing import Any, Optional

from ddp_probe.shared import settings
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy

_OWN: Any = timedelta  # Its methods: a subclass of the job's may have others.


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
        if before is None:
            shown = "None"
        elif not issubclass(type(before), timedelta):
            shown = "a %s" % type(before).__name__
        elif _OWN.__eq__(before, wanted) is True:
            return None
        else:
            shown = _OWN.__str__(before)
        why = "DDP_PROBE_TIMEOUT asks for it"
        return Change({"timeout": shown}, {"timeout": str(wanted)}, why, arguments={"timeout": wanted})


REMEDY = Timeout
