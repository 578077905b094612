"""All ranks of the launch come to the meeting."""

from typing import Iterator

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.host_meeting import HostMeeting, meet
from ddp_probe.shared.meeting import is_launch, missing
from ddp_probe.wording.words import counted, named, spans, subject

CHECK = Check(
    id="DOC801",
    slug="hosts-meet",
    title="All ranks of the launch reach MASTER_ADDR:MASTER_PORT.",
    looks_at="The doctor of every rank connects to that of rank 0, as the ranks of a job do, and rank 0 waits for each until the time limit.",
    remedy="Start doctor on every host with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and a different RANK on each.",
    of_hosts=True,
)
_TURNED_AWAY = "Give each host its own RANK (torchrun: --node_rank), and all hosts the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT."


def check(host: Host) -> Answer:
    """Meet, and say who did not come."""
    if not is_launch(host.environ):
        return CHECK.skipped("This is not one rank of several: to check hosts together, start doctor with torchrun or srun on all of them.")
    if missing(host.environ):
        return CHECK.blocked("It needs %s, which the environment does not have." % " and ".join(missing(host.environ)))
    met = meet(host, ())
    if met.error:
        return _alone(met)
    hosts = ", ".join("%s (%s)" % (each.name, named(each.ranks)) for each in met.hosts)
    wrong = [*_strangers(met), *_absent(met, host.request.seconds)]
    unknown = " %s." % met.unknown if met.unknown else ""
    if wrong:
        return CHECK.fail("%s There were %s.%s" % (" ".join(wrong), hosts, unknown), _remedy(met))
    return CHECK.ok("%s on %s met at %s: %s.%s" % (counted(met.world, "rank"), counted(len(met.hosts), "host"), met.place, hosts, unknown))


def _absent(met: HostMeeting, seconds: float) -> Iterator[str]:
    if met.absent:
        yield "%s of %d did not reach %s within %.0f s." % (subject(met.absent), met.world, met.place, seconds)


def _strangers(met: HostMeeting) -> Iterator[str]:
    present = {rank: host.name for host in met.hosts for rank in host.ranks}
    for each in met.strangers:
        if each["world"] != met.world:
            yield "%s arrived with WORLD_SIZE=%s, but rank 0 has %d." % (_who(each), each["world"], met.world)
        elif each["rank"] in present:
            yield "%s arrived as well, but %s has that rank already." % (_who(each), present[each["rank"]])
        else:
            yield "%s belongs to another launch, or was too late." % _who(each)


def _who(stranger: "dict[str, object]") -> str:
    return "Rank %s on %s" % (stranger["rank"], stranger["host"])


def _remedy(met: HostMeeting) -> str:
    if met.strangers:
        return _TURNED_AWAY
    address, _, port = met.place.rpartition(":")
    test = "python -c \"import socket; socket.create_connection(('%s', %s), 5)\"" % (address, port)
    return "On the host of rank %s, check whether doctor is running there, and while rank 0 waits, run: %s" % (spans(met.absent[:1]), test)


def _alone(met: HostMeeting) -> Answer:
    """Say why this rank met nobody."""
    port = met.place.rpartition(":")[2]
    if met.error.startswith("listen"):
        return CHECK.fail(
            "Rank 0 cannot listen on port %s of this host (%s)." % (port, met.error),
            "See who uses it with: ss -ltnp 'sport = :%s'. End it, or set another MASTER_PORT on all hosts." % port,
        )
    if "does not belong" in met.error:
        return CHECK.fail("Rank 0 at %s turned this rank away: %s." % (met.place, met.error.partition("Error: ")[2]), _TURNED_AWAY)
    return CHECK.fail(
        "Rank %d did not meet rank 0 at %s (%s)." % (met.rank, met.place, met.error),
        "Check whether rank 0 is running, whether MASTER_ADDR is an address of its host, and whether a firewall lets port %s through." % port,
    )
