"""How fast the ranks of this host add up tensors."""

from ddp_probe.doctor import live_ranks
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.wording.text import say

CHECK = Check(
    id="DOC605",
    slug="bandwidth",
    title="An all_reduce of several MB returns; its speed is reported, but not judged.",
    looks_at="The ranks of group-starts: the median of five all_reduce calls, on the slowest rank.",
    remedy="Small tensors passed and large ones did not: look at /dev/shm, at the locked-memory limit, and at the variables of the backend.",
    needs=("ddp-step",),
    live=True,
)


def check(host: Host) -> Answer:
    """Return the figure."""
    failed = live_ranks.judge(host, CHECK, ("bandwidth",))
    if failed:
        return failed
    slowest = max(live_ranks.launch(host).facts("bandwidth").values(), key=lambda facts: float(facts["seconds"]))
    megabytes, seconds = slowest["bytes"] / (1 << 20), slowest["seconds"]
    made = plan(host)
    return CHECK.ok(
        say(
            "{rate:.0f} MB/s: an all_reduce of {size:.0f} MB over {count} ranks took {milliseconds:.1f} ms with {backend} {on}.",
            rate=megabytes / seconds,
            size=megabytes,
            count=made.ranks,
            milliseconds=seconds * 1000,
            backend=made.backend,
            on=made.on,
        )
    )
