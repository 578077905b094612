"""Gloo takes an address of each host that the other hosts reach."""

from typing import Dict, List

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.host_meeting import MetHost, meet, why_not_compared
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import listed

CHECK = Check(
    id="DOC804",
    slug="gloo-address",
    title="The name of each host resolves to an address that the other hosts reach, or GLOO_SOCKET_IFNAME names the interface.",
    looks_at="The address that gloo uses on each host: that of GLOO_SOCKET_IFNAME, else the one that the host's own name resolves to.",
    remedy="Set GLOO_SOCKET_IFNAME to the interface between the hosts.",
    needs=("hosts-meet",),
    of_hosts=True,
)
_LOOPBACK = ("127.", "::1")


def check(host: Host) -> Answer:
    """Look for loopback addresses."""
    because = why_not_compared(host)
    if because:
        return CHECK.skipped(because)
    met = meet(host, ())
    bad = [each for each in met.hosts if each.gloo.startswith(_LOOPBACK)]
    if not bad:
        return CHECK.ok(say("On each host gloo uses an address that is not a loopback address."))
    saw = say(
        "Gloo would use {address} on {hosts}, because the name of the host resolves to it: other hosts cannot connect to it.",
        address=bad[0].gloo,
        hosts=listed([met_host.name for met_host in bad]),
    )
    if met.hosts[0].facts.get("backend") == "gloo":
        return CHECK.fail(saw, _remedy(bad))
    only = say("Only groups with the backend gloo need it, such as those for objects.")
    return CHECK.warn(joined([saw, only]), _remedy(bad))


def _remedy(bad: List[MetHost]) -> str:
    by_interface: Dict[str, List[str]] = {}
    for each in bad:
        by_interface.setdefault(each.interface, []).append(each.name)
    settings = []
    for name, hosts in by_interface.items():
        if name and name != "lo":
            setting = say("Set GLOO_SOCKET_IFNAME={interface} on {hosts}.", interface=name, hosts=listed(hosts))
            settings.append(setting)
    return joined(settings) or CHECK.remedy
