"""All ranks of the launch come to the meeting."""

from typing import Iterator

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.host_meeting import HostMeeting, meet
from ddp_probe.shared.meeting import is_launch, missing
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import counted, listed, named, quoted, spans

CHECK = Check(
    id="DOC801",
    slug="hosts-meet",
    title="All ranks of the launch reach MASTER_ADDR:MASTER_PORT.",
    looks_at="The doctor of every rank connects to that of rank 0, as the ranks of a job do, and rank 0 waits for each until the time limit.",
    remedy="Start doctor on every host with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and a different RANK on each.",
    of_hosts=True,
)
_TURNED_AWAY = say(
    "Give each host its own RANK (torchrun: --node_rank), and all hosts the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
)


def check(host: Host) -> Answer:
    """Meet, and say who did not come."""
    if not is_launch(host.environ):
        return CHECK.skipped(
            say("This is not one rank of several: to check hosts together, start doctor with torchrun or srun on all of them."),
        )
    lacking = missing(host.environ)
    if lacking:
        names = listed(lacking, by=" and ")
        because = say("It needs {variables}, which the environment does not have.", variables=names)
        return CHECK.blocked(because)
    met = meet(host, ())
    if met.error:
        return _alone(met)
    hosts = listed([say("{host} ({who})", host=each.name, who=named(each.ranks)) for each in met.hosts])
    wrong = [*_strangers(met), *_absent(met, host.request.seconds)]
    unknown: str = say("{unknown}.", unknown=quoted(met.unknown)) if met.unknown else ""
    if wrong:
        return CHECK.fail(joined([*wrong, say("There were {hosts}.", hosts=hosts), unknown]), _remedy(met))
    saw = say(
        "{ranks} on {count} met at {place}: {hosts}.",
        ranks=counted(met.world, "rank"),
        count=counted(len(met.hosts), "host"),
        place=met.place,
        hosts=hosts,
    )
    return CHECK.ok(joined([saw, unknown]))


def _absent(met: HostMeeting, seconds: float) -> Iterator[Text]:
    if met.absent:
        yield say(
            "{who:capital} of {world} did not reach {place} within {seconds:.0f} s.",
            who=named(met.absent),
            world=met.world,
            place=met.place,
            seconds=seconds,
        )


def _strangers(met: HostMeeting) -> Iterator[Text]:
    present = {}
    for host in met.hosts:
        for rank in host.ranks:
            present[rank] = host.name
    for stranger in met.strangers:
        who = say("Rank {rank} on {host}", rank=stranger["rank"], host=stranger["host"])
        if stranger["world"] != met.world:
            yield say(
                "{who} arrived with WORLD_SIZE={given}, but rank 0 has {world}.",
                who=who,
                given=stranger["world"],
                world=met.world,
            )
        elif stranger["rank"] in present:
            there = present[stranger["rank"]]
            yield say("{who} arrived as well, but {host} has that rank already.", who=who, host=there)
        else:
            yield say("{who} belongs to another launch, or was too late.", who=who)


def _remedy(met: HostMeeting) -> Text:
    if met.strangers:
        return _TURNED_AWAY
    address, _, port = met.place.rpartition(":")
    test = "python -c \"import socket; socket.create_connection(('%s', %s), 5)\"" % (address, port)
    return say(
        "On the host of rank {rank}, check whether doctor is running there, and while rank 0 waits, run: {command}",
        rank=spans(met.absent[:1]),
        command=quoted(test),
    )


def _alone(met: HostMeeting) -> Answer:
    """Say why this rank met nobody."""
    port = met.place.rpartition(":")[2]
    if met.error.startswith("listen"):
        return CHECK.fail(
            say("Rank 0 cannot listen on port {port} of this host ({error}).", port=port, error=met.error),
            say(
                "See who uses it with: {command}. End it, or set another MASTER_PORT on all hosts.",
                command=quoted("ss -ltnp 'sport = :%s'" % port),
            ),
        )
    if "does not belong" in met.error:
        error = quoted(met.error.partition("Error: ")[2])
        saw = say("Rank 0 at {place} turned this rank away: {error}.", place=met.place, error=error)
        return CHECK.fail(saw, _TURNED_AWAY)
    return CHECK.fail(
        say(
            "Rank {rank} did not meet rank 0 at {place} ({error}).",
            rank=met.rank,
            place=met.place,
            error=met.error,
        ),
        say(
            "Check whether rank 0 is running, whether MASTER_ADDR is an address of its host, and whether a firewall lets port {port} through.",
            port=port,
        ),
    )
