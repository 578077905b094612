"""MASTER_ADDR resolves, and says where the ranks meet."""

import socket

from ddp_probe.doctor import launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted

CHECK = Check(
    id="DOC401",
    slug="master-address",
    title="The address at which the ranks meet resolves, and belongs to the host of rank 0.",
    looks_at="MASTER_ADDR, or --master_addr and --rdzv_endpoint of the launch command, the resolver, and this host's own addresses.",
    remedy="Set it to an address of the host of rank 0 that all hosts can reach; 127.0.0.1 on one host.",
)


def check(host: Host) -> Answer:
    """Resolve it, and compare with this host's addresses."""
    address = launch_command.master_address(host)
    if not address:
        return CHECK.skipped(say("No address is given: a launcher on one host chooses 127.0.0.1."))
    try:
        addresses = sorted({entry[4][0] for entry in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)})
    except OSError as exc:
        error = quoted(exc.strerror or exc)
        return CHECK.fail(say("{address} does not resolve on this host: {error}.", address=address, error=error), _remedy(host))
    local = [each for each in addresses if _is_own(str(each))]
    shown = address
    if addresses != [address]:
        shown = say("{name} is {addresses}", name=address, addresses=listed([str(each) for each in addresses]))
    if not local and launch_command.is_rank_0_here(host):
        return CHECK.fail(
            say("{address} is not an address of this host, which starts rank 0.", address=shown),
            _remedy(host),
        )
    if local and launch_command.hosts(host) > 1 and all(str(each).startswith("127.") or each == "::1" for each in addresses):
        return CHECK.fail(
            say(
                "{address} is the loopback address, but {count} hosts are to meet there.",
                address=shown,
                count=launch_command.hosts(host),
            ),
            say("Pass the address by which the other hosts reach the host of rank 0: 'hostname -I' lists its addresses there."),
        )
    if local:
        return CHECK.ok(say("{address}, an address of this host.", address=shown))
    return CHECK.ok(say("{address}.", address=shown))


def _remedy(host: Host) -> Text:
    if launch_command.hosts(host) > 1:
        return say("Set it on every host to the address of the host of rank 0: 'hostname -I' lists its addresses there.")
    if host.request.command:
        return say("Pass --master_addr=127.0.0.1, and unset MASTER_ADDR.")
    return say("unset MASTER_ADDR, and start with torchrun, or set it to this host: export MASTER_ADDR=127.0.0.1")


def _is_own(address: str) -> bool:
    """Tell whether this host has an address, by binding to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
