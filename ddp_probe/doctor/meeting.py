"""Lets the doctors of several hosts meet, so that one table shows all of them."""

import json
import tempfile
from typing import Any, Dict, List, Sequence

from ddp_probe.activation.roles import rank_info
from ddp_probe.doctor import children
from ddp_probe.doctor.check import FAIL, OK, UNKNOWN, Result
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.facts_of_host import facts
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.host_meeting import HostMeeting, alone, made_of

_MARGIN = 180.0  # Seconds that a child has besides waiting for rank 0 and for the other ranks.


def is_launch(host: Host) -> bool:
    """Return whether this process is one rank of several."""
    here = rank_info(host.environ)
    return here.rank is not None and (here.world_size or 1) > 1


def leads_host(host: Host) -> bool:
    """Return whether this rank looks at the host for all ranks on it."""
    return rank_info(host.environ).local_rank in (None, 0)


def missing(host: Host) -> List[str]:
    """Return the variables that are not set as ranks need them to meet."""
    names = [] if host.environ.get("MASTER_ADDR") else ["MASTER_ADDR"]
    return names if host.environ.get("MASTER_PORT", "").isdigit() else [*names, "MASTER_PORT"]


def gather(host: Host, results: Sequence[Result]) -> HostMeeting:
    """Meet the doctors of the other ranks, and give them the results of this host; only a rank that leads its host has any."""
    return host.once("meeting", lambda: _gather(host, results))


def why_not_compared(host: Host) -> str:
    """Return why there is nothing to compare; empty if several hosts have met."""
    if not is_launch(host):
        return "This is not one rank of several."
    return "All ranks are on one host." if len(gather(host, ()).hosts) < 2 else ""


def _gather(host: Host, results: Sequence[Result]) -> HostMeeting:
    here = rank_info(host.environ)
    rank, world = here.rank or 0, here.world_size or 1
    address, port = host.environ.get("MASTER_ADDR", ""), host.environ.get("MASTER_PORT", "")
    if missing(host):
        return alone(rank, world, "%s:%s" % (address, port), "start: it needs %s" % " and ".join(missing(host)))
    own = {**facts(host), "results": [_brief(result) for result in results]} if leads_host(host) else {}
    run = host.environ.get("TORCHELASTIC_RUN_ID") or host.environ.get("SLURM_JOB_ID") or ""
    task = {"rank": rank, "world": world, "address": address, "port": int(port), "agent_key": _agent_key(host), "run": run}
    told = _ask({**task, "seconds": host.request.seconds, "facts": own}, host)
    return made_of(told, rank, world, "%s:%s" % (address, port))


def _agent_key(host: Host) -> str:
    """Return the key in the store of torchrun's agent, if the agent listens at MASTER_PORT; ranks that it starts again meet under another one."""
    if host.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return ""
    return "ddp_probe_doctor/%s" % host.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def _brief(result: Result) -> Dict[str, Any]:
    said = result.as_json()
    return {name: said[name] for name in (("id", "slug", "status") if said["status"] == OK else ("id", "slug", "status", "saw", "remedy"))}


def _ask(task: Dict[str, Any], host: Host) -> ChildAnswer:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(task, file)
        file.flush()
        return children.together([("meet", (file.name,), host.environ)], 2 * host.request.seconds + _MARGIN)[0]


def verdict_of_all(meeting: HostMeeting, results: Sequence[Result]) -> str:
    """Return the verdict of the hosts together: their own checks, and those of the meeting."""
    statuses = {result.answer.status for result in results}
    statuses |= {str(result["status"]) for host in meeting.hosts for result in host.results}
    return "found" if FAIL in statuses else "undecided" if UNKNOWN in statuses else "clear"
