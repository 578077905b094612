"""A backend that this torch does not have."""

import sys
from typing import Any, List, Optional

from ddp_probe.shared import settings
from ddp_probe.traced.facts.card_to_use import cards, usable_cuda
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy


class Backend(Remedy):
    """A backend that is not available is replaced: by the vendor's if that is registered, else by gloo."""

    word = "backend"
    order = 20
    targets = ("torch.distributed.distributed_c10d:init_process_group",)
    when = "The backend asked for is not built in, not registered, or needs an NVIDIA card on a host that has none."
    for_good = "Name the backend in init_process_group, or in env_cfg.dist_cfg.backend of an mmengine config."

    def prepare(self, call: Call) -> Optional[Change]:
        """Replace a single name; a combined one, such as cpu:gloo,cuda:nccl, is left to the job."""
        given = call.arguments().get("backend")
        asked = str.__str__(given) if issubclass(type(given), str) else ""
        if not asked or ":" in asked or _available(asked.lower()):
            return None
        wanted = str(settings.get(settings.BACKEND)).lower()
        choice = wanted or next((name for name in _vendors() if _available(name)), "gloo")
        if not _available(choice):
            self.declined(call, "neither %s nor %s is available" % (asked, choice))
            return None
        return Change({"backend": asked}, {"backend": choice}, "%s is not available here" % asked, arguments={"backend": choice})


def _vendors() -> List[str]:
    chosen = cards()
    return chosen.backends if chosen is not None else []


def _available(name: str) -> bool:
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    if name == "nccl":
        return bool(c10d.is_nccl_available()) and usable_cuda()
    if name in ("gloo", "mpi", "ucc", "xccl"):
        ask = getattr(c10d, "is_%s_available" % name, None)
        return bool(ask()) if ask is not None else name == "gloo"
    # A registered name is an attribute of Backend in capitals, in every torch from 1.12 on.
    return isinstance(getattr(c10d.Backend, name.upper(), None), str)


REMEDY = Backend
