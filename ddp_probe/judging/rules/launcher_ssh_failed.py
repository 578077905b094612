"""The launcher cannot start processes on another host: ssh does not let it in, or does not find it."""

from ddp_probe.judging.rule import Printed, Rule

_AFTER = r"Permission denied \(publickey|Host key verification failed|Could not resolve hostname|port 22: (?:Connection refused|No route to host)"

RULE = Rule(
    id="DDP697",
    slug="launcher-ssh-failed",
    cause="launcher_ssh_failed",
    title="The launcher cannot start processes on another host.",
    symptom="'was not reachable via ssh', 'ssh exited with exit code 255', 'ORTE was unable to reliably start one or more daemons'.",
    evidence="The words of ssh, pdsh, DeepSpeed or mpirun before any rank has started. ssh's words alone may come from another program.",
    remedy=(
        "Make ssh HOST true work from the launching host without a prompt: ssh-copy-id, a name that resolves, the port of sshd, known_hosts. "
        "On one host leave the hostfile out. Or start torchrun on each host by hand, or by the scheduler."
    ),
    restart="unknown",  # ssh that was never set up, or a host that is down.
    needs=("launcher.start",),
    printed=(
        Printed(r"host=(?P<host>[\w.:-]+) was not reachable via ssh", says="The launcher does not reach {host} by ssh.", ranks=False),
        Printed(
            r"pdsh@[\w.-]+: (?P<host>[\w.-]+): ssh exited with exit code 255|ORTE was unable to reliably start one or more daemons"
            r"|ORTE does not know how to route a message to the specified daemon|unable to ssh to host"
            r"|An? (?:ORTE|PRTE) daemon has unexpectedly failed",
            says="The launcher cannot start processes on another host by ssh.",
            ranks=False,
        ),
        Printed(
            r"RuntimeError: launcher '[\w.-]+' not installed|OSError: mpirun or mpiexec were not found",
            says="The tool that starts the other hosts is not installed on this one: install it (pdsh, mpirun), or start torchrun on each host.",
            ranks=False,
        ),
        Printed(
            _AFTER,
            beside=r"deepspeed|pdsh|mpirun|hostfile|orted|colossalai",
            says="ssh does not let the launcher into another host.",
            ranks=False,
        ),
    ),
)
