"""Lets the doctors of several hosts meet, so that one table shows all of them."""

import json
import tempfile
from typing import Any, Dict, Sequence

from ddp_probe.judging.doctor import children
from ddp_probe.judging.doctor.check import FAIL, OK, UNKNOWN, Result
from ddp_probe.judging.doctor.children import ChildAnswer
from ddp_probe.judging.doctor.facts_of_host import facts
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.host_meeting import HostMeeting, alone, made_of
from ddp_probe.shared.meeting.place import agent_key, is_launch, leads_host, missing, place
from ddp_probe.shared.rank_info import rank_info

_MARGIN = 180.0  # Seconds that a child has besides waiting for rank 0 and for the other ranks.


def meet(host: Host, results: Sequence[Result]) -> HostMeeting:
    """Meet the doctors of the other ranks, and give them the results of this host; only a rank that leads its host has any."""
    return host.once("meeting", lambda: _meet(host, results))


def why_not_compared(host: Host) -> str:
    """Return why there is nothing to compare; empty if several hosts have met."""
    if not is_launch(host.environ):
        return "This is not one rank of several."
    return "All ranks are on one host." if len(meet(host, ()).hosts) < 2 else ""


def _meet(host: Host, results: Sequence[Result]) -> HostMeeting:
    lacking = missing(host.environ)
    if lacking:
        here = rank_info(host.environ)
        named = "%s:%s" % (host.environ.get("MASTER_ADDR", ""), host.environ.get("MASTER_PORT", ""))
        return alone(here.rank or 0, here.world_size or 1, named, "start: it needs %s" % " and ".join(lacking))
    at = place(host.environ)
    own = {**facts(host), "results": [_brief(result) for result in results]} if leads_host(host.environ) else {}
    task = {**at._asdict(), "agent_key": agent_key(host.environ, "doctor"), "seconds": host.request.seconds, "facts": own}
    return made_of(_ask(task, host), at.rank, at.world, "%s:%s" % (at.address, at.port))


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
