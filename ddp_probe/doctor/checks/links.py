"""Each host reaches each other host."""

from typing import List, Tuple

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.host_meeting import CutLink, meet, why_not_compared
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import counted, listed, quoted

CHECK = Check(
    id="DOC802",
    slug="links",
    title="Every host can reach every other host, not only the host of rank 0.",
    looks_at="Each host listens on a port of its choice, as backends do, and every other host connects to it.",
    remedy="Open all ports between these hosts, because backends let the system choose a port.",
    needs=("hosts-meet",),
    of_hosts=True,
)
_LISTED = 8


def check(host: Host) -> Answer:
    """Look at the links that the hosts tried."""
    because = why_not_compared(host)
    if because:
        return CHECK.skipped(because)
    met = meet(host, ())
    pairs = _pairs(met.cut)
    if pairs:
        sentences = [_sentence(links) for links in pairs[:_LISTED]]
        if len(pairs) > _LISTED:
            sentences.append(say("And {more} more.", more=counted(len(pairs) - _LISTED, "pair")))
        return CHECK.fail(joined(sentences), _remedy(pairs[0][0]), tuple(_line(link) for link in met.cut))
    return CHECK.ok(say("Each of the {count} hosts can reach every other host.", count=len(met.hosts)))


def _pairs(cut: List[CutLink]) -> List[List[CutLink]]:
    """Return the links with both directions of a pair together."""
    by_pair: dict[Tuple[str, ...], List[CutLink]] = {}
    for link in cut:
        by_pair.setdefault(tuple(sorted((link.host, link.other))), []).append(link)
    return list(by_pair.values())


def _sentence(links: List[CutLink]) -> Text:
    first = links[0]
    if len(links) > 1:
        return say(
            "{host} and {other} cannot reach each other: {links}.",
            host=first.host,
            other=first.other,
            links=listed([_line(link) for link in links], by="; "),
        )
    return say("{host} cannot reach {other}: {link}.", host=first.host, other=first.other, link=_line(first))


def _line(link: CutLink) -> Text:
    error = quoted(link.error)
    if link.own:
        return say("{host} ({own}) to {address}: {error}", host=link.host, own=link.own, address=link.address, error=error)
    return say("{host} to {address}: {error}", host=link.host, address=link.address, error=error)


def _remedy(link: CutLink) -> Text:
    """Say how to test it; the port of the check is gone."""
    address = link.address.rpartition(":")[0]
    return say(
        "Open all ports between {host} and {other}, in firewalls, security groups and routes. "
        "To test it, run on {other}: {listen} and on {host}: {connect}",
        host=link.host,
        other=link.other,
        listen=quoted("python -m http.server 8123 --bind %s" % address),
        connect=quoted("python -c \"import socket; socket.create_connection(('%s', 8123), 5)\"" % address),
    )
