"""A variable that must be the same on all ranks differs between them."""

from typing import Dict, Iterator, List, Optional, Set

from ddp_probe.judging.rule import ERROR, WARNING, Evidence, Finding, Printed, Rule, failed, line
from ddp_probe.judging.skews import Skew, compare, started
from ddp_probe.judging.vendor_words import COMMUNICATION, VARIABLES
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, listed, named, quoted

_COMPARED = Expression(r"^(TORCH_|GLOO_|UCX_|FI_|USE_LIBUV$|PYTORCH_|(OMP|MKL)_NUM_THREADS$|FSDP_|\w*VISIBLE\w*|%s)" % VARIABLES)
# These are meant to differ from rank to rank or host to host, or change only what is printed.
_OWN = Expression(
    r"RANK|WORLD_SIZE|(^|_)ID$|HOSTID|ADDR|PORT|IFNAME|IF_IP|_HCA|NET_DEVICES|FILE|DIR$|DIR_|PATH|CACHE|HOME|_DEBUG$|DEBUG_SUBSYS|LOG|TRACE"
    r"|VERBOSE|STACK|AFFINITY|TORCHELASTIC|INDEX$"
)
# These change the groups that a rank makes or the messages that it sends: ranks then wait for each other forever, or lose bytes.
_BREAKS = Expression(
    r"^(TORCH_DISTRIBUTED_DEBUG|USE_LIBUV|UCX_TLS|FI_PROVIDER"
    r"|(NCCL|RCCL|%s)_(ALGO|PROTO|BUFFSIZE|NTHREADS|\w*NCHANNELS|\w*CTAS|NET|NET_PLUGIN|IB_DISABLE|P2P_\w+|SHM_DISABLE"
    r"|NVLS_\w+|CHECKS_DISABLE|LL\w*|COLLNET_\w+|CROSS_NIC|IB_\w+|CUMEM_\w+|SPLIT_\w+|COMM_\w+|NSOCKS\w+|SOCKET_N\w+))$" % COMMUNICATION
)
_COMMUNICATION = Expression(
    r"[Tt]imed? ?out|[Tt]imeout|NCCL|nccl|%s|gloo|Gloo|[Mm]ismatch|store|Socket|[Cc]onnection (closed|reset)|pg_wrapper|collective|Store"
    r"|enforce fail" % COMMUNICATION
)

_DETAIL = "A rank waits in the call that torch makes only with TORCH_DISTRIBUTED_DEBUG=DETAIL: another rank lacks the variable, or is not there."
_WHO_HAS = "Print TORCH_DISTRIBUTED_DEBUG on each rank; if all have it, look for the rank that did not reach the call."

RULE = Rule(
    id="DDP809",
    slug="environment-skew",
    cause="env_var_skew",
    title="A variable that must be the same on all ranks differs between them.",
    symptom="A hang, a timeout on the ranks that wait, or NCCL's 'collective mismatch error'; often only with certain hosts.",
    evidence=(
        "The variables that each rank recorded at its start, compared. The odd ranks are those that differ from the majority or, "
        "if there are two halves, from the launcher. Variables that belong to a rank or a host (RANK, interface names, visible cards) are left out."
    ),
    remedy=(
        "Set the variable in one place for all ranks (the launch command or the job script), and remove it from login scripts (~/.bashrc, "
        "/etc/profile.d, the container's image)."
    ),
    restart="no",  # The variable is set in the same places again.
    needs=("process.start",),
    printed=(
        # Another rank waits in what torch calls without it: that one lacks the variable.
        Printed(
            r"Socket Timeout|[Tt]imed out|[Ww]ait timeout after \d+ ?ms, keys: [^\n]*pg_wrapper",
            beside=r"\A(?=.*(?:in _create_process_group_wrapper\b|keys: [^\n]*pg_wrapper)).*store based barrier on rank",
            says="TORCH_DISTRIBUTED_DEBUG=DETAIL is set for this rank, and the others do not make the call that it waits in.",
        ),
        # torch makes these keys and calls only with TORCH_DISTRIBUTED_DEBUG=DETAIL; a rank without it never makes them.
        Printed(
            r"[Ww]ait timeout after \d+ ?ms, keys: [^\n]*pg_wrapper",
            says=_DETAIL,
            next=_WHO_HAS,
        ),
        Printed(
            r"Socket Timeout|[Tt]imed out",
            beside=r"in _create_process_group_wrapper\b",
            says=_DETAIL,
            next=_WHO_HAS,
        ),
        Printed(
            r"NET/\w+ : [^\n]*message truncated : receiving (?P<here>\d+) bytes instead of (?P<there>\d+)",
            says="A rank's NCCL sends {here} bytes, and another one's expects {there}: their settings (NCCL_*), versions or sizes differ.",
            next="Compare the NCCL_* variables and the NCCL of the hosts; if they are equal, print what each rank passes to the collective.",
            ranks=False,
        ),
        Printed(
            r"collective mismatch error, local size (?P<here>\d+) remote size (?P<there>\d+)",
            says="The NCCLs of two hosts split messages differently, into {here} and {there} bytes: their settings (NCCL_*) or versions differ.",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the variables of all ranks by name; those that are known to break communication come first."""
    differing = skews(run)
    if not differing:
        return
    first = differing[0]
    lost = _lost(run) if _BREAKS.match(first.name) else []
    yield RULE.found(
        ranks=first.ranks,
        verdict=say(
            "{name} differs between the ranks: {values}{others}.",
            name=first.name,
            values=first.told(),
            others=_others(differing[1:]),
        ),
        evidence=_starts(run, first)[:4] + [failed(failure) for failure in lost[:2]],
        when=min(failure.when for failure in lost) if lost else min(process.start_when for process in run.processes),
        remedy=_remedy(first),
        explains=lost,
        severity=ERROR if lost else WARNING,
    )


def skews(run: Run) -> List[Skew]:
    """Return the variables that differ and must not; those that are known to break communication come first."""
    differing = []
    for name in _names(run):
        skew = _compare(run, name)
        if skew is not None:
            differing.append(skew)
    return sorted(differing, key=lambda skew: (not _BREAKS.match(skew.name), skew.name))


def _others(others: List[Skew]) -> str:
    if not others:
        return ""
    names = listed([skew.name for skew in others[:4]])
    return say("; {names} {names:differs|differ} too", names=names)


def _starts(run: Run, skew: Skew) -> List[Evidence]:
    """Return the first lines of the ranks that have another value; of all ranks, if it is not known which value is right."""
    starts = []
    for process in run.processes:
        if process.rank is not None and process.rank in (skew.odd if skew.ranks else skew.all):
            setting = quoted("%s=%s" % (skew.name, skew.all[process.rank]))
            text = say("rank {rank}: {setting}", rank=process.rank, setting=setting)
            starts.append(line(LogLine(process.file, 1), text))
    return starts


def _remedy(skew: Skew) -> Text:
    if not skew.ranks:
        return say(
            "Set {name} to one value for all ranks, and look at what starts that shell (login scripts, the image, the start script).",
            name=skew.name,
        )
    if not skew.usual:
        return say(
            "Unset {name} for {who}, and look at what starts that shell (login scripts, the image, the start script).",
            name=skew.name,
            who=named(skew.ranks),
        )
    return say(
        "Set {setting} for {who}, and look at what starts that shell (login scripts, the image, the start script).",
        setting=quoted("%s=%s" % (skew.name, skew.usual)),
        who=named(skew.ranks),
    )


def _names(run: Run) -> List[str]:
    names: Set[str] = set()
    for process in run.processes:
        if process.rank is not None:
            names.update(process.started.environment)
    compared = [name for name in names if _COMPARED.match(name)]
    return sorted(name for name in compared if not _OWN.search(name.replace("TORCH_DISTRIBUTED_DEBUG", "")))


def _compare(run: Run, name: str) -> Optional[Skew]:
    values: Dict[int, str] = {}
    for process in run.processes:
        if process.rank is not None and process.start is not None:
            values[process.rank] = process.started.environment.get(name, "")
    launchers = [start.environment.get(name, "") for start in started(run)]
    if "VISIBLE" in name:  # Each rank may see other cards, but the same number of them.
        values = {rank: _how_many(value) for rank, value in values.items()}
        launchers = [_how_many(value) for value in launchers]
    return compare(name, values, launchers)


def _how_many(value: str) -> str:
    return counted(len(value.split(",")), "card") if value else ""


def _lost(run: Run) -> List[Failed]:
    """Return all failures if each of them can come from broken communication and no rank was killed; else nothing."""
    fatal = [failure for failure in run.failures if failure.fatal and failure.process is not None]
    if any(death.signal and death.signal != "SIGTERM" for death in run.deaths):
        return []
    alike = [failure for failure in fatal if failure.consequence or _COMMUNICATION.search(failure.text)]
    return fatal if len(alike) == len(fatal) else []
