"""The program takes the local rank as the launcher passes it."""

import re

from ddp_probe.doctor import launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.checks import script_there
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

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
        return CHECK.skipped(say("No launcher with a program is given after --."))
    spellings = sorted(set(_DECLARED.findall(host.read(path))))
    if command.launcher == "torchrun" or "use_env" in command.options:
        return _with_torchrun(spellings, host.read(path), command)
    if command.launcher != "torch.distributed.launch":
        return CHECK.skipped(say("{launcher} passes no such argument.", launcher=command.launcher))
    version = host.ask("torch_facts").last.get("torch", "2")
    passed = "-" if int(version.partition(".")[0]) >= 2 else "_"
    program, argument = quoted(path), "--local%srank" % passed
    if not spellings:
        return CHECK.fail(
            say(
                "torch.distributed.launch of torch {version} passes {argument}=N, which {program} does not declare.",
                version=version,
                argument=argument,
                program=program,
            ),
            say("Start it with torchrun, and read int(os.environ['LOCAL_RANK'])."),
        )
    if passed not in spellings:
        return CHECK.fail(
            say(
                "torch.distributed.launch of torch {version} passes {argument}=N, and {program} declares {declared}.",
                version=version,
                argument=argument,
                program=program,
                declared="--local%srank" % spellings[0],
            ),
            say(
                "In {program} declare both: parser.add_argument('--local-rank', '--local_rank', type=int, default=0).",
                program=program,
            ),
        )
    return CHECK.ok(
        say(
            "{program} declares {argument}, as torch {version} passes it.",
            program=program,
            argument=argument,
            version=version,
        )
    )


def _with_torchrun(spellings: "list[str]", text: str, command: launch_command.ParsedCommand) -> Answer:
    if spellings and "LOCAL_RANK" not in text:
        return CHECK.warn(
            say(
                "{program} takes the local rank from {argument}, which torchrun does not pass: every rank gets the default.",
                program=quoted(command.script),
                argument="--local%srank" % spellings[0],
            ),
            say(
                "In {program} read it from the environment: int(os.environ['LOCAL_RANK']).",
                program=quoted(command.script),
            ),
        )
    if "LOCAL_RANK" in text:
        return CHECK.ok(say("torchrun sets LOCAL_RANK, which {program} reads.", program=quoted(command.script)))
    return CHECK.ok(say("torchrun sets LOCAL_RANK."))
