"""Collectives return, with right results."""

from ddp_probe.doctor import live_ranks
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.wording.text import say

CHECK = Check(
    id="DOC603",
    slug="collectives-right",
    title="all_reduce, broadcast and barrier return on every rank, with the right results.",
    looks_at="The ranks of group-starts: each compares its results with the expected ones.",
    remedy="Read the last lines of the rank below. With --backend gloo --device cpu, doctor shows whether the backend is the cause.",
    needs=("group-starts",),
    live=True,
)
STAGES = ("all_reduce", "broadcast", "barrier")


def check(host: Host) -> Answer:
    """Look at what the ranks said."""
    made = plan(host)
    return live_ranks.judge(host, CHECK, STAGES, _remedy(host)) or CHECK.ok(
        say(
            "all_reduce, broadcast and barrier over {count} ranks are right, with {backend} {on}.",
            count=made.ranks,
            backend=made.backend,
            on=made.on,
        )
    )


def _remedy(host: Host) -> str:
    """Name the backend of the cards if another one was asked for."""
    made = plan(host)
    backend = made.known.backends[0] if made.cards and made.known and made.known.backends else ""
    if backend and made.backend == "gloo" and made.device != "cuda":
        return say(
            "gloo does not carry tensors of {kind} cards. Use the backend {backend} in init_process_group, here with --backend {backend}.",
            kind=made.device,
            backend=backend,
        )
    return ""
