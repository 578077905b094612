"""torch can be imported."""

from ddp_probe.doctor.check import Answer, Check, CheckTexts
from ddp_probe.doctor.host import Host

CHECK = Check(
    id="DOC101",
    slug="torch-imports",
    title="torch can be imported, and has torch.distributed.",
    looks_at="A child process imports torch and says its version, its file, and what it was built for.",
    remedy="Install torch for this Python, or activate the environment that has it: 'python -c \"import torch\"' must print nothing.",
    zh=CheckTexts(
        title="可以导入 torch，并且它有 torch.distributed。",
        looks_at="由一个子进程导入 torch，报告它的版本、文件，以及它针对什么编译。",
        remedy="为这个 Python 安装 torch，或激活装有它的环境：'python -c \"import torch\"' 应当什么都不打印。",
    ),
)


def check(host: Host) -> Answer:
    """Ask a child."""
    told = host.ask("torch_facts")
    if not told.answers:
        return CHECK.fail("A child that imports torch %s." % told.how())
    found = told.last
    built = ", ".join("%s %s" % pair for pair in sorted(found["built"].items())) or "the CPU and plugins"
    if not told.ended_well:
        return CHECK.fail("torch %s is imported, and then the child %s." % (found["torch"], told.how()))
    if not found["distributed"]:
        return CHECK.fail("torch %s was built without torch.distributed." % found["torch"], "Install a build of torch with USE_DISTRIBUTED=1.")
    return CHECK.ok("torch %s, built for %s, from %s." % (found["torch"], built, found["file"]))
