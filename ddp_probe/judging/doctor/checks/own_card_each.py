"""Each rank has its own card."""

from typing import Tuple

from ddp_probe.judging.doctor import live_ranks
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.live_ranks import plan
from ddp_probe.wording.words import counted, named

CHECK = Check(
    id="DOC606",
    slug="own-card-each",
    title="Each rank has its own card.",
    looks_at="The card that each rank of group-starts chose: its UUID or its bus id if the runtime reports it, else its number.",
    remedy="Start one rank per card, and let each call set_device(LOCAL_RANK).",
    needs=("torch-imports", "card-computes", "ranks-and-cards"),
    live=True,
)


def check(host: Host) -> Answer:
    """Compare the cards."""
    made = plan(host)
    if not made.cards:
        return CHECK.skipped("The ranks ran %s." % made.on)
    clash = live_ranks.shared_cards(host)
    if clash:
        return CHECK.fail(clash, _remedy(host))
    facts = live_ranks.launch(host).facts("set_device")
    without = [rank for rank in range(made.ranks) if rank not in facts]
    if without:
        return CHECK.blocked("It needs group-starts: %s did not come as far as set_device." % named(without))
    by = "UUIDs or bus ids" if all(each["identity"] for each in facts.values()) else "numbers, because the runtime reports no UUID and no bus id"
    return CHECK.ok("%d ranks have %d cards, compared by their %s." % (made.ranks, len(facts), by), *_cards(host))


def _cards(host: Host) -> Tuple[str, ...]:
    facts = live_ranks.launch(host).facts("set_device")
    return tuple("rank %d: %s %s" % (rank, each["card"], each["identity"]) for rank, each in sorted(facts.items()))


def _remedy(host: Host) -> str:
    made = plan(host)
    if made.ranks > made.cards:
        return "Start %s on this host: --nproc_per_node=%d." % (counted(made.cards, "rank"), made.cards)
    names = " or ".join(made.known.visible) if made.known and made.known.visible else "the visible devices"
    return "Two numbers name the same card. Look at %s, which must not name a card twice." % names
