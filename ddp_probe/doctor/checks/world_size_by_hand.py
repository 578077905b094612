"""No variable that torchrun sets is set by hand beside it."""

from ddp_probe.doctor import launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

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
        return CHECK.skipped(say("The command does not start torchrun."))
    given = [name for name in _SET if launch_command.variable(host, name)]
    if not given:
        return CHECK.ok(say("torchrun sets {variables}.", variables=listed(_SET)))
    shown = [quoted("%s=%s" % (name, launch_command.variable(host, name))) for name in given]
    exported = [name for name in given if not command.variables.get(name)]
    remedy = say("Take {variables} out of the command.", variables=listed(given))
    if exported:
        remedy = quoted("unset %s" % " ".join(exported))
    saw = say(
        "{variables} by hand: torchrun overwrites it in each rank, and a script that reads it before sees another number.",
        variables=listed(shown),
    )
    return CHECK.warn(saw, remedy)
