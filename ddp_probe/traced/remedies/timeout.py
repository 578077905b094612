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
        known = before is not None and issubclass(type(before), timedelta)
        if known and _OWN.__eq__(before, wanted) is True:
            return None
        had = _OWN.__str__(before) if known else "None" if before is None else "a %s" % type(before).__name__
        return Change({"timeout": had}, {"timeout": str(wanted)}, "DDP_PROBE_TIMEOUT asks for it", arguments={"timeout": wanted})


REMEDY = Timeout
