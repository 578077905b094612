"""The process group is taken down, and every rank ends."""

from ddp_probe.doctor import live_ranks
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.wording.text import say

CHECK = Check(
    id="DOC607",
    slug="group-ends",
    title="destroy_process_group returns on every rank.",
    looks_at="The ranks of group-starts: whether each one finished.",
    remedy="A job would hang or crash after its last step: let the ranks save what they have before destroy_process_group.",
    needs=("bandwidth",),
    live=True,
)


def check(host: Host) -> Answer:
    """Look at what the ranks said."""
    failed = live_ranks.judge(host, CHECK, ("destroy_process_group",))
    return failed or CHECK.ok(say("{count} ranks ended.", count=plan(host).ranks))
