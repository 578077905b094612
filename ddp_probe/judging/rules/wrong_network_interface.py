"""The communication library was given, or chose, a network interface that does not lead to the other hosts."""

import re
from typing import Dict, Iterator

from ddp_probe.judging import change
from ddp_probe.judging.printed import matches
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.vendor_words import COMMUNICATION
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, quoted

_BRIDGES = r"(?:br-[0-9a-f]{6,}|docker\d+|veth\w+|virbr\d+|cali\w+|flannel[.\w]*|cni\d+|tun\d+|lxcbr\d+):[\w.:%]+<\d+>"
_NO_WAY = (
    r"(?P<why>No route to host|Network is unreachable|No such device|Cannot assign requested address|[Cc]onnection timed out(?!, retrying)"
    r"|Connection refused(?!, retrying))"
)

_MESH = re.compile(r"[Cc]onnectFullMesh|remote=\[127\.")

RULE = Rule(
    id="DDP415",
    slug="wrong-network-interface",
    cause="wrong_network_interface",
    title="The network interface for communication does not exist, or does not lead to the other hosts.",
    symptom=(
        "gloo: 'Unable to find address for: …'; NCCL: 'Bootstrap : no socket interface found', or a system error after it has chosen a container "
        "bridge."
    ),
    evidence=(
        "The exception names the interface, and the environment of the rank has it in GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME or a similar variable."
    ),
    remedy=(
        "Name the interface that leads to the other hosts (ip route get <their address>): NCCL_SOCKET_IFNAME=<name>, GLOO_SOCKET_IFNAME=<name>; "
        "or unset them. For NCCL, '^docker,br-,veth,lo' leaves out bridges."
    ),
    restart="unknown",  # A name in the settings, or a network that only this host has.
    needs=("dist.init_process_group", "process.start"),
    printed=(
        Printed(
            r"Unable to find (?:address|interface) for: ?\[?(?P<name>\^[^\s\]]*)",
            says="gloo gets the list {name}, which only NCCL understands: GLOO_SOCKET_IFNAME takes the names of interfaces.",
        ),
        Printed(
            r"Unable to find (?:address|interface) for: ?\[?(?P<name>[\da-f]{1,4}[.:][\da-f.:]*/?\d*)(?:[\s\]]|\Z)",
            says="gloo gets the address {name}, and needs the name of an interface.",
        ),
        Printed(r"Unable to find (?:address|interface) for: ?\[?(?P<name>[^\s\]]+)", says="This host does not have an interface {name}."),
        Printed(
            r"no (?:NCCL_SOCKET_IFNAME |socket )?interface found|connecting to address [^\n]*with family (?!0\b)\d+ is neither AF_INET"
            r"|Unable to resolve hostname to a \(local\) address"
        ),
        Printed(
            r"(?:Unable|[Ff]ailed) to (?:find|get|resolve)[^\n]{0,40}(?:network )?(?:interface|ifname|NIC)\b"
            r"|\b(?:%s)_(?:SOCKET_IFNAME|IF_IP)[^\n]*(?:not|invalid|fail)" % COMMUNICATION
        ),
        Printed(
            r"ncclSystemError|unhandled system error|[Ss]ocket Timeout|[Cc]onnect[^\n]*(?:refused|timed out)",
            beside=r"SOCKET_IFNAME (?:set by environment to|set to|=) ?lo\b|\bUsing (?:\[0\] ?)?lo:127\.0\.0\.1<\d+>",
            says="The communication library was told to use the interface lo, which does not lead to another host.",
            ranks=False,
        ),
        Printed(
            r"NCCL WARN[^\n]*(?:network IB not found|Failed to initialize any NET plugin)",
            says="NCCL was told to use InfiniBand (NCCL_NET=IB), and this host has none.",
            ranks=False,
        ),
        Printed(r"ncclSystemError|unhandled system error", beside=_BRIDGES, says="NCCL has chosen a container bridge as the way to the other hosts."),
        Printed(
            r"(?:NCCL[^\n]*Call to bind|\bCall to connect|\b[Cc]onnect to [^\s<]+<\d+>|socket\w*Connect:)[^\n]*?%s" % _NO_WAY,
            says="NCCL cannot connect to another rank: {why}.",
        ),
        Printed(
            r"Net : Call to recv from [^\n]{1,80} failed : (?P<why>Connection refused|No route to host|Network is unreachable|Connection timed out)",
            says="NCCL cannot connect to another rank: {why}.",
        ),
        Printed(
            r"enforce fail at [^\n]*gloo[^\n]*ss1\.ss_family == ss2\.ss_family",
            says="gloo gets an IPv4 address of one rank and an IPv6 address of another: the hosts resolve their own names differently.",
        ),
        Printed(
            r"Every node should have a unique IP address\. Got (?P<nodes>\d+) nodes",
            says=(
                "vLLM's workers report more or fewer addresses than the {nodes} hosts have: a host has several interfaces; set VLLM_HOST_IP on each "
                "host to its own address in the network that Ray uses."
            ),
            ranks=False,
        ),
        Printed(
            r"NCCL WARN[^\n]*(?:progressing operation=Connect|to execute operation Connect from rank \d+)",
            says="NCCL cannot connect two ranks.",
        ),
        Printed(
            r"(?P<lib>NCCL|%s) [Ee]rror[^\n]*unhandled system error|\bncclSystemError" % COMMUNICATION,
            says="A system call of the communication library failed, and it does not say which: the network, /dev/shm or a limit of the host.",
            next="Start with NCCL_DEBUG=INFO (for other libraries their own variable): the first line with WARN before the error names the call.",
            ranks=False,
        ),
        # Until all ranks are present, NCCL makes no communicator, and torch does not count a first operation.
        Printed(
            r"[Ww]atchdog caught collective operation timeout: WorkNCCL\(SeqNum=1,",
            beside=(
                r"\A(?=.*\[Rank 0\] [Ww]atchdog caught[^\n]*SeqNum=1, OpType=(?P<op>\w+),).*\[Rank [1-9]\d*\] [Ww]atchdog caught[^\n]*SeqNum=1,"
                r" OpType=(?P=op),"
            ),
            nowhere=r"SeqNum=1, OpType=\w+, NumelIn=(?P<size>\d+),.*SeqNum=1, OpType=\w+, NumelIn=(?!(?P=size),)\d",
            says=(
                "Rank 0 and others were in the first collective together, and no data arrived: the path between them (P2P, shared memory, "
                "InfiniBand, network interface) does not work."
            ),
            ranks=False,
        ),
        Printed(r"(?:NCCL|WARN)[^\n]*Socket creation failed : Address family not supported", says="NCCL finds no network interface that it can use."),
        Printed(
            (
                r"[Gg]loo[^\n]*(?:connect|Connect)[^\n]*(?:No route to host|Network is unreachable|Connection refused|timed out"
                r"|timeout)[^\n]*remote=\[127\."
            ),
            says="gloo tries to reach another host at this host's address.",
        ),
        # After a restart it is the address of a rank that is gone: the interface is not the cause.
        Printed(
            r"[Cc]onnectFullMesh failed",
            unless=r"(?:closed|reset) by (?:remote )?peer",  # The peer was reached, and has gone.
            nowhere=r"restart_count=[1-9]|Restart(?:ing)? worker|[Ww]ill restart|attempts left",
            says="gloo cannot connect all ranks.",
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the exception, and the variable that names the interface."""
    of_ranks = [match for match in matches(RULE, run) if match.failure.process is not None]
    matched = [match for match in of_ranks if not (_MESH.search(match.failure.text) and _one_host(run))]
    if not matched:
        return
    first = matched[0].failure
    variables = _variables(first.process) if first.process is not None else {}
    settings = " ".join("%s=%s" % item for item in sorted(variables.items()))
    ranks = sorted({match.failure.rank for match in matched if match.failure.rank is not None})
    host = first.process.host if first.process is not None else ""
    name = matched[0].found.groupdict().get("name")
    facts = {
        "who": named(ranks),
        "where": say(" on {host}", host=host) if host else "",
        "environment": say(": the environment has {settings}", settings=quoted(settings)) if settings else "",
    }
    verdict = say("{who:capital} cannot find the network interface that it needs{where}{environment}.", **facts)
    if name:
        verdict = say(
            "{who:capital} cannot find the network interface {interface}{where}{environment}.",
            interface=quoted(name),
            **facts,
        )
    yield RULE.found(
        ranks=ranks,
        verdict=verdict,
        evidence=first_of([failed(match.failure) for match in matched]),
        when=first.when,
        change=[
            *(change.Variable(name, None) for name in sorted(variables) or ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")),
            say("Or name an interface that 'ip -br addr' lists on this host and that leads to the others."),
        ],
        explains=[match.failure for match in matched],
    )


def _one_host(run: Run) -> bool:
    """Tell whether all ranks are on one host: every address is reachable there, so an address that does not answer belongs to a rank that is gone."""
    return not run.missing and len({process.host for process in run.processes}) == 1


def _variables(process: LoggedProcess) -> Dict[str, str]:
    return {name: value for name, value in process.started.environment.items() if name.endswith(("_SOCKET_IFNAME", "_IF_IP"))}
