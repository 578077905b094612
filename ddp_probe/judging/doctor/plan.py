"""What the live checks run on: which device, how many ranks, which backend."""

from typing import List, NamedTuple, Optional, Tuple

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.host import Host
from ddp_probe.shared.accelerators import Accelerator

_RANKS = 2  # On a host without cards.


class LivePlan(NamedTuple):
    """What a job of this host would use."""

    types: str  # What torch may call the devices, the likeliest first: `gcu,xla`; `cpu`.
    attribute: str  # `gcu` for torch.gcu.
    module: str  # The vendor's module to import first.
    cards: int  # How many torch counts; 0 on the CPU.
    ranks: int
    backend: str
    known: Optional[Accelerator]  # Whose cards they are, or, on the CPU, whose cards were expected.

    @property
    def device(self) -> str:
        """The likeliest name of the devices."""
        return self.types.split(",")[0]

    @property
    def on(self) -> str:
        """The place of the ranks, as a sentence ends."""
        if self.cards:
            return "on %s cards" % self.device
        return "on the CPU; torch counts no %s card" % self.known.name if self.known else "on the CPU; no accelerator is used"


def plan(host: Host) -> LivePlan:
    """Return the plan; it is made once."""
    return host.once("plan", lambda: _plan(host))


def _plan(host: Host) -> LivePlan:
    known = cards.accelerator(host)
    count = cards.count(host)
    backend = host.request.backend or _backend(host, known if count else None)
    if known is None or not count:
        return LivePlan("cpu", "", "", 0, host.request.nproc or _RANKS, backend, known)
    types = ",".join(known.device_types) or known.name
    return LivePlan(types, known.torch_attribute, cards.importable_module(host, known), count, host.request.nproc or count, backend, known)


def _backend(host: Host, known: Optional[Accelerator]) -> str:
    """Return the first backend of the vendor that is registered, else gloo."""
    registered: List[str] = cards.torch_facts(host).last.get("backends", []) if known else []
    return next((name for name in (known.backends if known else ()) if name in registered), "gloo")


def asked_and_absent(host: Host) -> str:
    """Return the device that was asked for and that torch does not count; empty if there is none such."""
    asked = host.request.device
    return asked if asked and asked != "cpu" and not plan(host).cards else ""


def without(host: Host, indexes: Tuple[int, ...]) -> str:
    """Return the assignment that hides these cards from a job, such as TOPS_VISIBLE_DEVICES=0,1,3; empty if there is none."""
    made = plan(host)
    if made.known is None or not made.known.visible or len(indexes) >= made.cards:
        return ""
    name = next((each for each in made.known.visible if host.environ.get(each)), made.known.visible[0])
    visible = [entry.strip() for entry in host.environ.get(name, "").split(",") if entry.strip()]
    entries = visible if len(visible) == made.cards else [str(index) for index in range(made.cards)]
    return "%s=%s" % (name, ",".join(entry for index, entry in enumerate(entries) if index not in indexes))
