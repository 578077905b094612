"""torch can be imported."""

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

CHECK = Check(
    id="DOC101",
    slug="torch-imports",
    title="torch can be imported, and has torch.distributed.",
    looks_at="A child process imports torch and reports its version, its file, and what it was built for.",
    remedy="Install torch for this Python, or activate the environment that has it: 'python -c \"import torch\"' must print nothing.",
)


def check(host: Host) -> Answer:
    """Ask a child."""
    answer = host.ask("torch_facts")
    if not answer.answers:
        return CHECK.fail(say("A child that imports torch {how}.", how=answer.how()))
    facts = answer.last
    version = facts["torch"]
    built = say("the CPU and plugins")
    if facts["built"]:
        built = listed(["%s %s" % pair for pair in sorted(facts["built"].items())])
    if not answer.ended_well:
        return CHECK.fail(say("torch {version} is imported, and then the child {how}.", version=version, how=answer.how()))
    if not facts["distributed"]:
        return CHECK.fail(
            say("torch {version} was built without torch.distributed.", version=version),
            say("Install a build of torch with USE_DISTRIBUTED=1."),
        )
    return CHECK.ok(say("torch {version}, built for {built}, from {file}.", version=version, built=built, file=quoted(facts["file"])))
