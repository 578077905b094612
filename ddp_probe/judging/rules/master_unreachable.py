"""A rank cannot reach the master's address and port: no process listens there, or the name does not resolve."""

import re
from typing import Iterator, List

from ddp_probe.judging.printed import by_text, matches
from ddp_probe.judging.rule import Finding, Printed, Rule, Undecided, failed, first_of
from ddp_probe.judging.who import NO_WARNING, ranks_of
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import command, named, place, quoted

_ENDPOINT = Expression(r"(?:connect to|address(?:es)? of) \(?\[?([^\s,\])]+)\]?[,:] ?(\d*)")

_RANK_0 = say(
    "See what rank 0 did instead: {logs}. Then check that its host is the one in MASTER_ADDR.",
    logs=command("logs", "--rank", "0"),
)

RULE = Rule(
    id="DDP413",
    slug="master-unreachable",
    cause="master_addr_unreachable",
    title="The master's address cannot be reached.",
    symptom=(
        "'The client socket has timed out … while trying to connect to (address, port)', 'gai error: Name or service not known', "
        "'No route to host', or torchrun's RendezvousConnectionError."
    ),
    evidence=(
        "init_process_group (or the launcher's rendezvous) failed while it connected, and no log shows that rank 0 was listening. "
        "If the store was reached and ranks were missing, see rank-never-started."
    ),
    remedy=(
        "Check MASTER_ADDR and MASTER_PORT on every host: the address of the host where rank 0 runs, as the other hosts see it (not localhost); "
        "start rank 0; open the port in the firewall (nc -zv <address> <port>)."
    ),
    restart="unknown",  # A wrong address stays wrong; a master that was late or lost does not.
    needs=("dist.init_process_group",),
    printed=(
        Printed(
            NO_WARNING + r"client socket has (?:timed out|failed)[^\n]*(?:connect to|address of) \(?\[?(?P<address>[^\s,\])]+)\]?[,:] ?(?P<port>\d*)",
            says="{address}, port {port}, cannot be reached.",
            ranks=False,
        ),
        Printed(
            NO_WARNING + r"addresses of \(?\[?(?P<address>[^\s,\])]+)\]?[,:] ?(?P<port>\d+)\)? cannot be retrieved \(gai error",
            says="The name {address} does not resolve to an address.",
            ranks=False,
        ),
        Printed(
            r"connectFullMesh failed[^\n]{0,400}?SO_ERROR: Connection refused, remote=(?P<address>\S+?)(?:\$\d+)?(?=\s|$)",
            says="The store answered, with {address}, and no process listens there: it has ended, or it is of the start before a restart.",
            ranks=False,
        ),
        Printed(
            (
                r"RendezvousConnectionError: The connection to the C10d store has failed|[Cc]onnection to (?:the )?(?:C10d|etcd) (?:store"
                r"|server)[^\n]* (?:has )?failed"
            ),
            ranks=False,
        ),
        Printed(r"RendezvousTimeoutError", says="The other hosts did not join the launcher's rendezvous in time.", ranks=False),
        Printed(
            r"connect\(\) timed out(?:\. Original timeout was \d+ ms)?|connect\(\): (?:No route to host|Network is unreachable|Connection refused)",
            ranks=False,
        ),
        Printed(
            NO_WARNING + r"(?:gai error: -\d|socket\.gaierror|Name or service not known|Temporary failure in name resolution|nodename nor servname)",
            unless=r"huggingface|https?:|urllib|requests/|(?<!rendezvous\()[Uu][Rr][Ll]|wandb|github",
            ranks=False,
        ),
        Printed(
            NO_WARNING + r"(?:No route to host|[Nn]etwork is unreachable|[Cc]onnection refused|[Cc]onnection timed out)",
            beside=r"TCPStore|rendezvous|init_process_group|_create_c10d_store",
            unless=r"NCCL|https?:|urllib",
            ranks=False,
        ),
    ),
    yields_to=("wrong-network-interface", "master-port-zero"),
)


# gloo has asked the store, and does not reach the address that it got there.
_MESH = Expression(r"connectFullMesh failed[^\n]*remote=(?P<address>\S+?)(?:\$\d+)?$", re.MULTILINE)
_NEW_STORE = say(
    "First find out what ended the previous start. For a restart that works, start the whole launch again (until torchrun …; do sleep 5; "
    "done), or give each start its own keys: torch.distributed.init_process_group(…, "
    "store=torch.distributed.PrefixStore(os.environ['TORCHELASTIC_RESTART_COUNT'], torch.distributed.TCPStore(os.environ['MASTER_ADDR'], "
    "int(os.environ['MASTER_PORT']), is_master=False)), rank=int(os.environ['RANK']), world_size=int(os.environ['WORLD_SIZE']))."
)


def check(run: Run) -> "Iterator[Finding | Undecided]":
    """Find the ranks that could not connect, and what happened to rank 0."""
    failures = [match.failure for match in matches(RULE, run) if match.failure.process is not None]
    answered = [failure for failure in failures if _MESH.search(failure.text)]
    if answered:
        yield _store_answered(run, answered)
        return
    if not failures:
        yield from by_text(RULE, run)
        return
    master = run.ranks.get(0)
    if master is None:
        yield _found(failures, say("rank 0, which listens there, left no file"))
    elif any(failure.process is master and failure not in failures for failure in run.failures):
        return  # Rank 0 has its own failure; the others cannot connect because of it.
    elif master.count(schema.InitProcessGroup):
        yield _found(failures, say("although rank 0 was in init_process_group on {host}", host=master.host))
    else:
        because = say(
            "{who:capital} could not connect to the master's address, and rank 0 never called init_process_group.",
            who=named(_ranks(failures)),
        )
        yield RULE.undecided(because, then=_RANK_0)


def _ranks(failures: List[Failed]) -> List[int]:
    return sorted(set(ranks_of(failures)))


def _found(failures: List[Failed], because: Text) -> Finding:
    first = failures[0]
    call = next((call for call in first.calls if isinstance(call.begin, schema.InitProcessGroup)), None)
    endpoint = _ENDPOINT.search(first.text)
    address = port = ""
    if endpoint:
        address, port = endpoint.groups()
    elif call:
        address, port = call.begin.master_addr, call.begin.master_port
    name = bool(re.search("[A-Za-z]", address)) and address != "localhost"
    waited = ""
    if call is not None and call.until is not None:
        waited = say(" in {seconds:.0f} s", seconds=call.until - call.when)
    resolves = say("Check that the name resolves there: getent hosts {address}.", address=address) if name else ""
    listens = say(
        "Check that rank 0 runs at {address} and listens on port {port} (nc -zv {nc_address} {nc_port} from the other hosts), "
        "and that MASTER_ADDR and MASTER_PORT are the same for all ranks.",
        address=address or "MASTER_ADDR",
        port=port or "MASTER_PORT",
        nc_address=address or "$MASTER_ADDR",
        nc_port=port or "$MASTER_PORT",
    )
    return RULE.found(
        ranks=[],
        verdict=say(
            "{who:capital} could not reach the master at {address}, port {port}{waited}: {because}.",
            who=named(_ranks(failures)),
            address=address or "MASTER_ADDR",
            port=port or "MASTER_PORT",
            waited=waited,
            because=because,
        ),
        evidence=first_of([failed(failure) for failure in failures]),
        when=first.when,
        remedy=joined([resolves, listens]),
        explains=failures,
    )


def _store_answered(run: Run, failures: List[Failed]) -> Finding:
    """Say that the store answered with an address at which nobody listens: after a restart, that of the start before."""
    match = _MESH.search(failures[0].text)
    address = match["address"] if match is not None else "?"
    if run.earlier_generations:
        answered = say(
            "{who:capital} reached the store and got {address} from it, but no process listens there: "
            "the address of a process of the previous start, because the launcher keeps its store when it restarts the ranks.",
            who=named(_ranks(failures)),
            address=address,
        )
        remedy = _NEW_STORE
    else:
        answered = say(
            "{who:capital} reached the store and got {address} from it, but no process listens there.",
            who=named(_ranks(failures)),
            address=address,
        )
        remedy = say(
            "Check whether that process has ended. If it runs, open the ports between the hosts, and name the interface that the hosts share: "
            "GLOO_SOCKET_IFNAME. The address was {address}.",
            address=address,
        )
    return RULE.found(
        ranks=[],
        verdict=joined([_ended_before(run), answered]),
        evidence=first_of([failed(failure) for failure in failures]),
        when=failures[0].when,
        remedy=remedy,
        explains=failures,
    )


def _ended_before(run: Run) -> str:
    """Say how the last start that had joined its group ended."""
    for start in reversed(run.earlier_generations):
        if any(_MESH.search(failure.text) for failure in start.failures):
            continue
        signals = [death for death in start.deaths if death.rank is not None and death.signal not in ("", "SIGTERM")]
        own = [failure for failure in start.failures if failure.fatal and not failure.consequence]
        if signals:
            rank, signal = signals[0].rank or 0, signals[0].signal
            return say("Rank {rank} of the previous start was ended by {signal}.", rank=rank, signal=signal)
        if own:
            error = quoted(own[0].said(120))
            return say("The previous start failed with {error} at {where}.", error=error, where=place(own[0].site))
        return ""
    return ""
