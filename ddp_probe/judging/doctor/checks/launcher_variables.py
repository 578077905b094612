"""The variables of the launcher are complete and agree, or none is set."""

from typing import Iterator, List, Tuple

from ddp_probe.judging.doctor import launch_command
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.shared.rank_info import rank_info

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
        return CHECK.ok("Rank %d of %s, according to %s." % (here.rank, here.world_size, here.launcher) if here.rank is not None else "None is set.")
    problems = list(_problems(host, there))
    if problems:
        return CHECK.fail(" ".join(saw for saw, _ in problems), " ".join(dict.fromkeys(remedy for _, remedy in problems)))
    return CHECK.ok(", ".join("%s=%s" % (name, host.environ[name]) for name in there) + ".")


def _problems(host: Host, there: List[str]) -> Iterator[Tuple[str, str]]:
    left_over = [name for name in there if name not in ("MASTER_ADDR", "MASTER_PORT")]
    missing = [name for name in _ALL if name not in there]
    if launch_command.inside(host) and missing and "RANK" in there:
        yield (
            "%s %s set, but %s %s not: init_process_group with env:// needs all of them." % (*_are(there), *_are(missing)),
            "Start the ranks with torchrun, which sets them; or, if this shell starts no rank itself: unset %s" % " ".join(there),
        )
    elif left_over and not launch_command.inside(host):
        yield "%s %s set in this shell, but RANK is not." % _are(left_over), "unset %s" % " ".join(left_over)
    for name, least in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1)):
        value = host.environ.get(name, "")
        if value and not (value.isdigit() and int(value) >= least):
            yield "%s=%s is not a valid number." % (name, value), "unset %s" % " ".join(there)
    rank, world = host.environ.get("RANK", ""), host.environ.get("WORLD_SIZE", "")
    if rank.isdigit() and world.isdigit() and int(rank) >= int(world) > 0:
        yield "RANK=%s is not below WORLD_SIZE=%s: ranks count from 0." % (rank, world), "unset %s" % " ".join(there)


def _are(names: List[str]) -> Tuple[str, str]:
    return ", ".join(names), "is" if len(names) == 1 else "are"
