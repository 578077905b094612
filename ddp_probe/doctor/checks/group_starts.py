"""Ranks start, and form a process group."""

import re
import socket

from ddp_probe.doctor import cards, live_ranks
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

CHECK = Check(
    id="DOC602",
    slug="group-starts",
    title="One rank per card starts, chooses its card, and joins the process group; without cards, two ranks do.",
    looks_at="Ranks on this host with the environment of the job: import, set_device, init_process_group.",
    remedy="Read the last lines of the rank below. With --backend gloo --device cpu, doctor shows whether the host is the cause.",
    needs=("torch-imports", "card-computes", "backend-registered"),
    live=True,
)
STAGES = ("import", "set_device", "init_process_group")
_NO_INTERFACE = re.compile(r"Unable to find address for: (\S+)")
_NO_BACKEND = re.compile(r"Unknown backend|Invalid backend|doesn't have \w+ built in|only supported with GPUs")


def check(host: Host) -> Answer:
    """Launch the ranks."""
    clash = live_ranks.shared_cards(host)
    if clash:
        return CHECK.blocked(say("It needs own-card-each: {clash}", clash=clash))
    fault = live_ranks.fault(host)
    made = plan(host)
    return live_ranks.judge(host, CHECK, STAGES, _remedy(host, fault) if fault else "") or CHECK.ok(
        say(
            "{count} ranks formed a group with {backend} {on}.",
            count=made.ranks,
            backend=made.backend,
            on=made.on,
        )
    )


def _remedy(host: Host, fault: live_ranks.RankFault) -> str:
    """Return the change for what the rank said, if it is a known one."""
    made = plan(host)
    interface = _NO_INTERFACE.search(fault.error)
    if interface:
        variables = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
        given = [name for name in variables if interface[1] in host.environ.get(name, "")]
        return say(
            "There is no interface {interface}; this host has {interfaces}. For ranks on this host alone, set {setting}.",
            interface=interface[1].rstrip("."),
            interfaces=listed([name for _, name in socket.if_nameindex()]),
            setting=quoted("%s=lo" % (given or variables)[0]),
        )
    if _NO_BACKEND.search(fault.error):
        there = cards.torch_facts(host).last.get("backends", [])
        return say(
            "This torch has these backends here: {backends}. Use one of them, as in --backend {first}, or install what brings {backend}.",
            backends=listed(there) if there else say("none"),
            first=there[0] if there else "none",
            backend=made.backend,
        )
    if fault.stage == "init_process_group" and "address" in fault.error and made.backend == "gloo":
        return say(
            "gloo takes the address that the name of this host resolves to. Set GLOO_SOCKET_IFNAME=lo for ranks on this host alone.",
        )
    return ""
