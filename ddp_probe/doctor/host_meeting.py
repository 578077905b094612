"""Lets the doctors of several hosts meet: what each host has, what each found, which ranks are absent, which links are cut, which clocks differ."""

import sys
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ddp_probe.doctor import cards, children
from ddp_probe.doctor.check import FAIL, OK, UNKNOWN, Result
from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.host import Host, packages_of
from ddp_probe.doctor.live_ranks import plan
from ddp_probe.shared.accelerators import runtime_variables, visible_variables
from ddp_probe.shared.meeting import agent_key, is_launch, leads_host, missing, place
from ddp_probe.shared.rank_info import rank_info
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted


class MetHost(NamedTuple):
    """A host whose doctor took part."""

    name: str  # Its host name; with its first rank if another host has the same name.
    ranks: Tuple[int, ...]
    address: str  # The address from which it reaches MASTER_ADDR.
    interface: str
    gloo: str  # The address that gloo would take; empty if GLOO_SOCKET_IFNAME decides.
    facts: Dict[str, Any]  # Versions, cards, variables: see facts_of_host.py.
    results: List[Dict[str, Any]]  # Its checks, as in `doctor --json`; only id, slug and status if a check is ok.

    def failed(self) -> List[Dict[str, Any]]:
        """Return its checks that failed."""
        return [result for result in self.results if result["status"] == FAIL]


class CutLink(NamedTuple):
    """A host that could not connect to another one."""

    host: str
    other: str
    own: str  # "10.0.0.2, eth0"
    address: str  # "10.0.0.3:41235"
    error: str


class HostMeeting(NamedTuple):
    """The result of the meeting; the same on every rank that met the others."""

    rank: int
    world: int
    place: str  # MASTER_ADDR:MASTER_PORT
    hosts: List[MetHost]  # Ordered by first rank.
    absent: List[int]
    strangers: List[Dict[str, Any]]  # Ranks that connected twice, or belong to another launch.
    unknown: str  # How many connections did not know the launch; empty if there was none.
    cut: List[CutLink]
    clocks: Dict[str, Tuple[float, float]]  # Seconds by which a host's clock is ahead of rank 0's, and how far that may be off.
    error: str  # Why this rank met nobody; empty if it did.

    def as_json(self) -> Dict[str, Any]:
        """Return it as `doctor --json` prints it."""
        named = self._asdict()
        return {**named, "hosts": [host._asdict() for host in self.hosts], "cut": [link._asdict() for link in self.cut]}


def made_of(answer: ChildAnswer, rank: int, world: int, place: str) -> HostMeeting:
    """Return the meeting that a child has described."""
    all_said = answer.last.get("meeting")
    if answer.code != 0 or all_said is None:
        return alone(rank, world, place, _why(answer))
    ranks: Dict[int, Dict[str, Any]] = {int(rank): facts for rank, facts in all_said["ranks"].items()}
    hosts = _hosts(ranks)
    links = {int(rank): facts["links"] for rank, facts in all_said["found"].items()}
    names: Dict[int, str] = {}
    for host in hosts:
        names.update(dict.fromkeys(host.ranks, host.name))
    absent = [number for number in range(world) if number not in ranks]
    return HostMeeting(rank, world, place, hosts, absent, all_said["strangers"], all_said["unknown"], _cut(links, names), _clocks(links, names), "")


def alone(rank: int, world: int, place: str, why: str) -> HostMeeting:
    """Return the meeting of a rank that met nobody."""
    return HostMeeting(rank, world, place, [], [], [], "", [], {}, why)


def _why(answer: ChildAnswer) -> str:
    stage = next((str(line["stage"]) for line in reversed(answer.answers) if "stage" in line), "start")
    route = next((line["own"] for line in answer.answers if "own" in line), ["", ""])
    by = say(" from {own}", own=quoted(_local_end(route))) if route[0] else ""
    if answer.last.get("error"):
        return say("{stage}{by}: {error}", stage=stage, by=by, error=quoted(answer.last["error"]))
    return say("{stage}{by}: the child {how}", stage=stage, by=by, how=answer.how())


def _hosts(ranks: Dict[int, Dict[str, Any]]) -> List[MetHost]:
    by_host: Dict[str, List[int]] = {}
    for rank in sorted(ranks):
        by_host.setdefault(ranks[rank]["identity"], []).append(rank)
    names = [ranks[numbers[0]]["host"] for numbers in by_host.values()]
    met = []
    for mine in by_host.values():
        first = ranks[mine[0]]
        name = first["host"] if names.count(first["host"]) == 1 else "%s/%d" % (first["host"], mine[0])
        facts: Dict[str, Any] = next((ranks[rank]["facts"] for rank in mine if ranks[rank]["facts"]), {})
        reached = first["address"], first["interface"], first["gloo"]
        met.append(MetHost(name, tuple(mine), *reached, facts, facts.pop("results", [])))
    return met


def _cut(links_of: Dict[int, Dict[str, Any]], names: Dict[int, str]) -> List[CutLink]:
    return [
        CutLink(names[rank], names[int(other)], _local_end(tried["from"]), "%s:%s" % (tried["address"], tried["port"]), tried["error"])
        for rank, links in sorted(links_of.items())
        for other, tried in sorted(links.items(), key=lambda item: int(item[0]))
        if tried["error"]
    ]


def _local_end(route: Sequence[str]) -> str:
    return ", ".join(part for part in route if part)


def _clocks(links_of: Dict[int, Dict[str, Any]], names: Dict[int, str]) -> Dict[str, Tuple[float, float]]:
    """Return how the clocks differ from that of rank 0's host, as the other hosts measured it."""
    measured = {rank: links["0"] for rank, links in links_of.items() if "0" in links and not links["0"]["error"]}
    return {names[rank]: (-float(link["offset"]), float(link["delay"]) / 2) for rank, link in measured.items()}


# What the hosts of a job must have in common: versions, the driver, backends, cards, and the variables that decide how ranks talk.

_BEGINNINGS = ("NCCL_", "GLOO_", "UCX_", "FI_", "TORCH_", "OMP_")
_NAMES = ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_OWN_TO_A_HOST = ("SOCKET_IFNAME", "_IB_HCA", "_TOPO_FILE", "_NET_DEVICES", "_IFACE")
_PACKAGES = ("torch", "mmengine", "mmcv", "numpy")
_LONGEST = 200  # Characters of a variable.


def facts(host: Host) -> Dict[str, Any]:
    """Return the facts of this host."""
    of_torch = cards.torch_facts(host).last
    kind = cards.accelerator(host)
    versions = {name: packages_of(host).version(name) for name in _PACKAGES}
    return {
        "Python": "%d.%d.%d" % sys.version_info[:3],
        **versions,
        "torch": of_torch.get("torch") or versions["torch"],
        "vendor module": ("%s %s" % (of_torch.get("module", ""), of_torch.get("module_version", ""))).strip(),
        "driver": _driver(host),
        "backends": ", ".join(of_torch.get("backends", [])),
        "backend": plan(host).backend,
        "cards": "%d %s" % (cards.count(host), kind.name) if kind else "none",
        "environment": _environment(host),
    }


def _driver(host: Host) -> str:
    """Return the version of the kernel module."""
    kind = cards.accelerator(host)
    names: Tuple[str, ...] = kind.drivers if kind else ()
    versions = (host.read(host.sys, "module", name, "version").strip() for name in names if name)
    return next((version for version in versions if version), "")


def _environment(host: Host) -> Dict[str, str]:
    beginnings = (*_BEGINNINGS, *runtime_variables())
    names = {*_NAMES, *visible_variables()}
    chosen = (name for name in host.environ if (name in names or name.startswith(beginnings)) and not name.endswith(_OWN_TO_A_HOST))
    return {name: host.environ[name][:_LONGEST] for name in sorted(chosen)}


_MARGIN = 180.0  # Seconds that a child has besides waiting for rank 0 and for the other ranks.


def meet(host: Host, results: Sequence[Result]) -> HostMeeting:
    """Meet the doctors of the other ranks, and give them the results of this host; only a rank that leads its host has any."""
    return host.once("meeting", lambda: _meet(host, results))


def why_not_compared(host: Host) -> str:
    """Return why there is nothing to compare; empty if several hosts have met."""
    if not is_launch(host.environ):
        return say("This is not one rank of several.")
    return say("All ranks are on one host.") if len(meet(host, ()).hosts) < 2 else ""


def _meet(host: Host, results: Sequence[Result]) -> HostMeeting:
    lacking = missing(host.environ)
    if lacking:
        here = rank_info(host.environ)
        named = "%s:%s" % (host.environ.get("MASTER_ADDR", ""), host.environ.get("MASTER_PORT", ""))
        why = say("start: it needs {variables}", variables=listed(lacking, by=" and "))
        return alone(here.rank or 0, here.world_size or 1, named, why)
    at = place(host.environ)
    mine = {**facts(host), "results": [_brief(result) for result in results]} if leads_host(host.environ) else {}
    task = {**at._asdict(), "agent_key": agent_key(host.environ, "doctor"), "seconds": host.request.seconds, "facts": mine}
    answer = children.with_task("meet", task, host.environ, 2 * host.request.seconds + _MARGIN)
    return made_of(answer, at.rank, at.world, "%s:%s" % (at.address, at.port))


def _brief(result: Result) -> Dict[str, Any]:
    fields = result.as_json()
    names = ["id", "slug", "status"]
    if fields["status"] != OK:
        names += ["saw", "remedy"]
    return {name: fields[name] for name in names}


def verdict_of_all(meeting: HostMeeting, results: Sequence[Result]) -> str:
    """Return the verdict on all hosts: their own checks, and those of the meeting."""
    statuses = {result.answer.status for result in results}
    statuses |= {str(result["status"]) for host in meeting.hosts for result in host.results}
    return "found" if FAIL in statuses else "undecided" if UNKNOWN in statuses else "clear"
