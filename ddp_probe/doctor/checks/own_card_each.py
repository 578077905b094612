"""Each rank has its own card."""

from typing import Tuple

from ddp_probe.doctor import live_ranks
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, listed, named

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
        return CHECK.skipped(say("The ranks ran {where}.", where=made.on))
    clash = live_ranks.shared_cards(host)
    if clash:
        return CHECK.fail(clash, _remedy(host))
    facts = live_ranks.launch(host).facts("set_device")
    without = [rank for rank in range(made.ranks) if rank not in facts]
    if without:
        return CHECK.blocked(say("It needs group-starts: {who} did not come as far as set_device.", who=named(without)))
    by = say("numbers, because the runtime reports no UUID and no bus id")
    if all(each["identity"] for each in facts.values()):
        by = say("UUIDs or bus ids")
    return CHECK.ok(
        say("{ranks} ranks have {cards} cards, compared by their {by}.", ranks=made.ranks, cards=len(facts), by=by),
        *_cards(host),
    )


def _cards(host: Host) -> Tuple[str, ...]:
    facts = live_ranks.launch(host).facts("set_device")
    lines = []
    for rank, each in sorted(facts.items()):
        lines.append(say("rank {rank}: {card} {identity}", rank=rank, card=each["card"], identity=each["identity"]))
    return tuple(lines)


def _remedy(host: Host) -> Text:
    made = plan(host)
    if made.ranks > made.cards:
        return say(
            "Start {ranks} on this host: --nproc_per_node={count}.",
            ranks=counted(made.cards, "rank"),
            count=made.cards,
        )
    names = say("the visible devices")
    if made.known and made.known.visible:
        names = listed(made.known.visible, by=" or ")
    return say("Two numbers name the same card. Look at {names}, which must not name a card twice.", names=names)
