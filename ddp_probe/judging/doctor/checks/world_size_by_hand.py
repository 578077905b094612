"""No variable that torchrun sets is set by hand beside it."""

from ddp_probe.judging.doctor import launch_command
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC705",
    slug="set-by-hand",
    title="No variable that torchrun sets is set by hand beside it.",
    looks_at="RANK, LOCAL_RANK and WORLD_SIZE in the command and in this shell, if the command starts torchrun.",
    remedy="Leave them to torchrun: --nproc_per_node and --nnodes decide.",
)
_SET = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


def check(host: Host) -> Answer:
    """Compare the variables with the launcher."""
    command = launch_command.of(host)
    if command is None or command.launcher not in ("torchrun", "torch.distributed.launch"):
        return CHECK.skipped("The command does not start torchrun.")
    given = [name for name in _SET if launch_command.variable(host, name)]
    if not given:
        return CHECK.ok("torchrun sets %s." % ", ".join(_SET))
    shown = ", ".join("%s=%s" % (name, launch_command.variable(host, name)) for name in given)
    exported = [name for name in given if not command.variables.get(name)]
    remedy = "unset %s" % " ".join(exported) if exported else "Take %s out of the command." % ", ".join(given)
    return CHECK.warn("%s by hand: torchrun overwrites it in each rank, and a script that reads it before sees another number." % shown, remedy)
