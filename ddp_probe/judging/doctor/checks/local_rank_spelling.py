"""The program takes the local rank as the launcher passes it."""

import re

from ddp_probe.judging.doctor import launch_command
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.checks import script_there
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC703",
    slug="local-rank-argument",
    title="The program takes the local rank in the way in which the launcher of this torch passes it.",
    looks_at=(
        "The text of the program, the launcher, and torch's version: torch.distributed.launch passes --local-rank from 2.0 on, and "
        "--local_rank before."
    ),
    remedy="Read it from the environment: int(os.environ['LOCAL_RANK']).",
)
_DECLARED = re.compile(r"add_argument\(\s*[^)]*?['\"]--local([-_])rank['\"]")


def check(host: Host) -> Answer:
    """Look for the argument in the program's text."""
    command = launch_command.of(host)
    path = script_there.path_of(command) if command else ""
    if command is None or not path or not command.launcher:
        return CHECK.skipped("No launcher with a program is given after --.")
    spellings = sorted(set(_DECLARED.findall(host.read(path))))
    if command.launcher == "torchrun" or "use_env" in command.options:
        return _with_torchrun(spellings, host.read(path), command)
    if command.launcher != "torch.distributed.launch":
        return CHECK.skipped("%s passes no such argument." % command.launcher)
    version = host.ask("torch_facts").last.get("torch", "2")
    passed = "-" if int(version.partition(".")[0]) >= 2 else "_"
    if not spellings:
        return CHECK.fail(
            "torch.distributed.launch of torch %s passes --local%srank=N, which %s does not declare." % (version, passed, path),
            "Start it with torchrun, and read int(os.environ['LOCAL_RANK']).",
        )
    if passed not in spellings:
        return CHECK.fail(
            "torch.distributed.launch of torch %s passes --local%srank=N, and %s declares --local%srank." % (version, passed, path, spellings[0]),
            "In %s declare both: parser.add_argument('--local-rank', '--local_rank', type=int, default=0)." % path,
        )
    return CHECK.ok("%s declares --local%srank, as torch %s passes it." % (path, passed, version))


def _with_torchrun(spellings: "list[str]", text: str, command: launch_command.ParsedCommand) -> Answer:
    if spellings and "LOCAL_RANK" not in text:
        return CHECK.warn(
            "%s takes the local rank from --local%srank, which torchrun does not pass: every rank gets the default." % (command.script, spellings[0]),
            "In %s read it from the environment: int(os.environ['LOCAL_RANK'])." % command.script,
        )
    return CHECK.ok("torchrun sets LOCAL_RANK%s." % (", which %s reads" % command.script if "LOCAL_RANK" in text else ""))
