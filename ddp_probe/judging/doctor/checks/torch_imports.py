"""torch can be imported."""

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.fail("A child that imports torch %s." % answer.how())
    facts = answer.last
    built = ", ".join("%s %s" % pair for pair in sorted(facts["built"].items())) or "the CPU and plugins"
    if not answer.ended_well:
        return CHECK.fail("torch %s is imported, and then the child %s." % (facts["torch"], answer.how()))
    if not facts["distributed"]:
        return CHECK.fail("torch %s was built without torch.distributed." % facts["torch"], "Install a build of torch with USE_DISTRIBUTED=1.")
    return CHECK.ok("torch %s, built for %s, from %s." % (facts["torch"], built, facts["file"]))
