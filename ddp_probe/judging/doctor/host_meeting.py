"""What a meeting of doctors came to: what each host found, which ranks did not come, which links are cut, which clocks differ."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ddp_probe.judging.doctor.check import FAIL
from ddp_probe.judging.doctor.children import ChildAnswer


class MetHost(NamedTuple):
    """A host whose doctor came."""

    name: str  # Its host name; with its first rank if another host has the same name.
    ranks: Tuple[int, ...]
    address: str  # By which it reaches MASTER_ADDR.
    interface: str
    gloo: str  # The address that gloo would take; empty if GLOO_SOCKET_IFNAME decides.
    facts: Dict[str, Any]  # Versions, cards, variables: see facts_of_host.py.
    results: List[Dict[str, Any]]  # Its checks, as in `doctor --json`; of one that is ok only id, slug and status.

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
    """What came of it; the same on every rank that met the others."""

    rank: int
    world: int
    place: str  # MASTER_ADDR:MASTER_PORT
    hosts: List[MetHost]  # By first rank.
    absent: List[int]
    strangers: List[Dict[str, Any]]  # Ranks that came twice, or from another launch.
    unknown: str  # How many connections did not know the launch; empty if there was none.
    cut: List[CutLink]
    clocks: Dict[str, Tuple[float, float]]  # Seconds by which a host's clock is ahead of rank 0's, and how far that may be off.
    error: str  # Why this rank met nobody; empty if it did.

    def as_json(self) -> Dict[str, Any]:
        """Return it as `doctor --json` prints it."""
        named = self._asdict()
        return {**named, "hosts": [host._asdict() for host in self.hosts], "cut": [link._asdict() for link in self.cut]}


def made_of(told: ChildAnswer, rank: int, world: int, place: str) -> HostMeeting:
    """Return the meeting that a child has told of."""
    all_said = told.last.get("meeting")
    if told.code != 0 or all_said is None:
        return alone(rank, world, place, _why(told))
    ranks: Dict[int, Dict[str, Any]] = {int(each): said for each, said in all_said["ranks"].items()}
    hosts = _hosts(ranks)
    found = {int(each): said["links"] for each, said in all_said["found"].items()}
    names = {each: host.name for host in hosts for each in host.ranks}
    absent = [each for each in range(world) if each not in ranks]
    return HostMeeting(rank, world, place, hosts, absent, all_said["strangers"], all_said["unknown"], _cut(found, names), _clocks(found, names), "")


def alone(rank: int, world: int, place: str, why: str) -> HostMeeting:
    """Return the meeting of a rank that met nobody."""
    return HostMeeting(rank, world, place, [], [], [], "", [], {}, why)


def _why(told: ChildAnswer) -> str:
    stage = next((str(said["stage"]) for said in reversed(told.answers) if "stage" in said), "start")
    own = next((said["own"] for said in told.answers if "own" in said), ["", ""])
    by = " from %s" % _own(own) if own[0] else ""
    return "%s%s: %s" % (stage, by, told.last["error"]) if told.last.get("error") else "%s%s: the child %s" % (stage, by, told.how())


def _hosts(ranks: Dict[int, Dict[str, Any]]) -> List[MetHost]:
    by_host: Dict[str, List[int]] = {}
    for rank in sorted(ranks):
        by_host.setdefault(ranks[rank]["identity"], []).append(rank)
    names = [ranks[each[0]]["host"] for each in by_host.values()]
    made = []
    for mine in by_host.values():
        first = ranks[mine[0]]
        name = first["host"] if names.count(first["host"]) == 1 else "%s/%d" % (first["host"], mine[0])
        told: Dict[str, Any] = next((ranks[rank]["facts"] for rank in mine if ranks[rank]["facts"]), {})
        made.append(MetHost(name, tuple(mine), first["address"], first["interface"], first["gloo"], told, told.pop("results", [])))
    return made


def _cut(found: Dict[int, Dict[str, Any]], names: Dict[int, str]) -> List[CutLink]:
    return [
        CutLink(names[rank], names[int(other)], _own(tried["from"]), "%s:%s" % (tried["address"], tried["port"]), tried["error"])
        for rank, links in sorted(found.items())
        for other, tried in sorted(links.items(), key=lambda item: int(item[0]))
        if tried["error"]
    ]


def _own(route: Sequence[str]) -> str:
    return ", ".join(part for part in route if part)


def _clocks(found: Dict[int, Dict[str, Any]], names: Dict[int, str]) -> Dict[str, Tuple[float, float]]:
    """Return how the clocks differ from that of rank 0's host, as the other hosts measured it."""
    measured = {rank: links["0"] for rank, links in found.items() if "0" in links and not links["0"]["error"]}
    return {names[rank]: (-float(link["offset"]), float(link["delay"]) / 2) for rank, link in measured.items()}
