"""A step of DistributedDataParallel trains the same model on all ranks."""

from ddp_probe.doctor import live_ranks
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.wording.text import say

CHECK = Check(
    id="DOC604",
    slug="ddp-step",
    title="DistributedDataParallel averages the gradients, and all ranks have the same parameters after a step.",
    looks_at="The ranks of group-starts: each trains one step on its own batch.",
    remedy="Read the last lines of the rank below. With --backend gloo --device cpu, doctor shows whether the device is the cause.",
    needs=("collectives-right",),
    live=True,
)


def check(host: Host) -> Answer:
    """Look at what the ranks said."""
    made = plan(host)
    return live_ranks.judge(host, CHECK, ("ddp",)) or CHECK.ok(
        say("{count} ranks have the same parameters after a step {on}.", count=made.ranks, on=made.on)
    )
