"""Each host reaches each other host."""

from typing import List, Tuple

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.host_meeting import CutLink, meet, why_not_compared
from ddp_probe.wording.words import counted

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
        shown = " ".join(_sentence(links) for links in pairs[:_LISTED])
        more = " And %s more." % counted(len(pairs) - _LISTED, "pair") if len(pairs) > _LISTED else ""
        return CHECK.fail(shown + more, _remedy(pairs[0][0]), tuple(_line(link) for link in met.cut))
    return CHECK.ok("Each of the %d hosts can reach every other host." % len(met.hosts))


def _pairs(cut: List[CutLink]) -> List[List[CutLink]]:
    """Return the links with both directions of a pair together."""
    by_pair: dict[Tuple[str, ...], List[CutLink]] = {}
    for link in cut:
        by_pair.setdefault(tuple(sorted((link.host, link.other))), []).append(link)
    return list(by_pair.values())


def _sentence(links: List[CutLink]) -> str:
    first = links[0]
    if len(links) > 1:
        return "%s and %s cannot reach each other: %s." % (first.host, first.other, "; ".join(map(_line, links)))
    return "%s cannot reach %s: %s." % (first.host, first.other, _line(first))


def _line(link: CutLink) -> str:
    return "%s%s to %s: %s" % (link.host, " (%s)" % link.own if link.own else "", link.address, link.error)


def _remedy(link: CutLink) -> str:
    """Say how to test it; the port of the check is gone."""
    address = link.address.rpartition(":")[0]
    return (
        "Open all ports between %s and %s, in firewalls, security groups and routes. To test it, run on %s: python -m http.server 8123 --bind %s"
        " and on %s: python -c \"import socket; socket.create_connection(('%s', 8123), 5)\""
        % (link.host, link.other, link.other, address, link.host, address)
    )
