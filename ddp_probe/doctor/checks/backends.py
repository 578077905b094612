"""The backend of the job is built in or registered."""

from typing import List

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed

CHECK = Check(
    id="DOC207",
    slug="backend-registered",
    title="The backend of the job is built into torch, or its plugin registers it.",
    looks_at="What torch.distributed lists in a child that imported the vendor's module, if there is one.",
    remedy="Import the vendor's module before init_process_group, or choose a backend that is available.",
    needs=("torch-imports", "vendor-module"),
)


def check(host: Host) -> Answer:
    """Compare the backend that is asked for, or the vendor's, with the list."""
    there: List[str] = cards.torch_facts(host).last.get("backends", [])
    known = cards.accelerator(host)
    shown = listed(there) if there else say("none")
    wanted = host.request.backend
    if wanted:
        missing = [part for part in _parts(wanted) if part not in there]
        if missing:
            saw = say(
                "torch.distributed has no backend {missing}; it has {backends}.",
                missing=listed(missing, by=" and "),
                backends=shown,
            )
            return CHECK.fail(saw, _instead(there))
        saw = say("{backend} is there; torch.distributed has {backends}.", backend=wanted, backends=shown)
        return CHECK.ok(saw)
    of_vendor = [name for name in (known.backends if known else ()) if name in there]
    if known and known.backends and not of_vendor:
        return CHECK.warn(
            say(
                "torch.distributed has {backends}, and no backend of {vendor} ({missing}).",
                backends=shown,
                vendor=known.vendor,
                missing=listed(known.backends),
            ),
            say(
                "Install the plugin that registers {backend}; until then gloo works, through the host's memory.",
                backend=known.backends[0],
            ),
        )
    return CHECK.ok(say("torch.distributed has {backends}.", backends=shown))


def _parts(backend: str) -> List[str]:
    """Return the backends of 'gloo', or of 'cpu:gloo,cuda:nccl'."""
    return [part.rpartition(":")[2].strip().lower() for part in backend.split(",")]


def _instead(there: List[str]) -> str:
    if not there:
        return CHECK.remedy
    return say(
        "Pass a backend that is there: --backend {backend}, and the same to init_process_group (mmengine: dist_cfg=dict(backend='{backend}')).",
        backend=there[0],
    )
