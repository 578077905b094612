"""The port at which the ranks meet is free."""

import os
import socket

from ddp_probe.doctor import launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="DOC402",
    slug="master-port",
    title="The port at which the ranks meet is free on the host of rank 0.",
    looks_at="MASTER_PORT, or --master_port and --rdzv_endpoint of the launch command; the port is bound for a moment, if rank 0 is to start here.",
    remedy="Choose another port: torchrun --master_port=29501, or export MASTER_PORT=29501.",
)
_LOW = 1024


def check(host: Host) -> Answer:
    """Bind it."""
    text = launch_command.master_port(host)
    if not text:
        return CHECK.skipped(say("No port is given: torchrun uses 29500, or a free one with --standalone."))
    if not text.isdigit() or not 0 <= int(text) < 1 << 16:
        return CHECK.fail(
            say("{port} is not a valid port.", port=quoted(repr(text))),
            say("Choose a port from 1024 to 65535: {option}", option=_other(host)),
        )
    port = int(text)
    if port == 0:
        return CHECK.ok(say("Port 0 lets the launcher choose a free one."))
    if launch_command.inside(host):
        return CHECK.skipped(say("The launch that runs this uses port {port} itself.", port=port))
    if not launch_command.is_rank_0_here(host):
        return CHECK.skipped(say("Port {port} is bound on the host of rank 0, which is not this one.", port=port))
    try:
        _bind(port)
    except PermissionError:
        return CHECK.fail(
            say("Port {port} is reserved for the system.", port=port),
            say("Choose a port from 1024 up: {option}", option=_other(host)),
        )
    except OSError as exc:
        return CHECK.fail(
            say(
                "Port {port} cannot be bound: {error}{holder}.",
                port=port,
                error=quoted(exc.strerror or exc),
                holder=_holder(host, port),
            ),
            say("Choose another port: {option}", option=_other(host)),
        )
    if port < _LOW and os.geteuid() == 0:
        return CHECK.ok(say("Port {port} is free; only root may bind it.", port=port))
    return CHECK.ok(say("Port {port} is free.", port=port))


def _bind(port: int) -> None:
    """Bind the port on all addresses, as torch does; nothing listens."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        probe.bind(("", port))
        probe.listen(1)


def _other(host: Host) -> Text:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        port = int(probe.getsockname()[1])
    if host.request.command and "MASTER_PORT" not in host.environ:
        return quoted("--master_port=%d" % port)
    return quoted("export MASTER_PORT=%d" % port)


def _holder(host: Host, port: int) -> str:
    """Say which process of this user listens there, as far as /proc shows it."""
    wanted = "%04X" % port
    inodes = set()
    for table in ("tcp", "tcp6"):
        for row in host.read(host.proc, "net", table).splitlines()[1:]:
            words = row.split()
            if len(words) > 9 and words[3] == "0A" and words[1].rpartition(":")[2] == wanted:
                inodes.add("socket:[%s]" % words[9])
    for pid in (name for name in os.listdir(host.proc) if name.isdigit()):
        if inodes and _holds(os.path.join(host.proc, pid, "fd"), inodes):
            command = host.read(host.proc, pid, "cmdline").replace("\0", " ").strip()[:100]
            return say("; process {pid} holds it ({command})", pid=pid, command=quoted(command))
    return ""


def _holds(folder: str, inodes: "set[str]") -> bool:
    try:
        return any(os.readlink(os.path.join(folder, name)) in inodes for name in os.listdir(folder))
    except OSError:  # a process of another user, or one that has ended
        return False
