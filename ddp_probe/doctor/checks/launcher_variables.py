"""The variables of the launcher are complete and agree, or none is set."""

from typing import Iterator, List, Tuple

from ddp_probe.doctor import launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.shared.rank_info import rank_info
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

CHECK = Check(
    id="DOC403",
    slug="launcher-variables",
    title="The launcher's variables are complete and agree with each other, or none of them is set.",
    looks_at="RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and those of Slurm and MPI.",
    remedy="Start the ranks with torchrun, which sets all of them.",
)
_ALL = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def check(host: Host) -> Answer:
    """Compare them."""
    there = [name for name in _ALL if host.environ.get(name)]
    if not there:
        here = rank_info(host.environ)
        if here.rank is None:
            return CHECK.ok(say("None is set."))
        return CHECK.ok(
            say(
                "Rank {rank} of {world}, according to {launcher}.",
                rank=here.rank,
                world=here.world_size,
                launcher=here.launcher,
            )
        )
    problems = list(_problems(host, there))
    if problems:
        remedies = list(dict.fromkeys(remedy for _, remedy in problems))
        return CHECK.fail(joined([saw for saw, _ in problems]), joined(remedies))
    settings = [quoted("%s=%s" % (name, host.environ[name])) for name in there]
    return CHECK.ok(say("{settings}.", settings=listed(settings)))


def _problems(host: Host, there: List[str]) -> Iterator[Tuple[Text, Text]]:
    left_over = [name for name in there if name not in ("MASTER_ADDR", "MASTER_PORT")]
    missing = [name for name in _ALL if name not in there]
    unset = quoted("unset %s" % " ".join(there))
    if launch_command.inside(host) and missing and "RANK" in there:
        yield (
            say(
                "{there} {there:is|are} set, but {missing} {missing:is|are} not: init_process_group with env:// needs all of them.",
                there=listed(there),
                missing=listed(missing),
            ),
            say(
                "Start the ranks with torchrun, which sets them; or, if this shell starts no rank itself: {command}",
                command=unset,
            ),
        )
    elif left_over and not launch_command.inside(host):
        saw = say("{there} {there:is|are} set in this shell, but RANK is not.", there=listed(left_over))
        yield saw, quoted("unset %s" % " ".join(left_over))
    for name, least in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1)):
        value = host.environ.get(name, "")
        if value and not (value.isdigit() and int(value) >= least):
            yield say("{setting} is not a valid number.", setting=quoted("%s=%s" % (name, value))), unset
    rank, world = host.environ.get("RANK", ""), host.environ.get("WORLD_SIZE", "")
    if rank.isdigit() and world.isdigit() and int(rank) >= int(world) > 0:
        saw = say("RANK={rank} is not below WORLD_SIZE={world}: ranks count from 0.", rank=rank, world=world)
        yield saw, unset
