"""The vendor's module can be imported."""

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC201",
    slug="vendor-module",
    title="The vendor's module is installed, can be imported, and fits torch.",
    looks_at="A child imports torch, then the module, and reports its version and file.",
    remedy="Install the module that the vendor provides for this version of torch and Python.",
    needs=("torch-imports",),
)


def check(host: Host) -> Answer:
    """Ask a child."""
    known = cards.accelerator(host)
    if known is None or not known.modules:
        return CHECK.skipped("torch itself supports %s." % cards.device_type(known) if known else "No accelerator is detected.")
    module = cards.importable_module(host, known)
    if not module:
        names = " or ".join(known.modules)
        return CHECK.fail(
            "No %s is installed for this Python." % names, "Install %s, as the vendor (%s) provides it for this torch." % (names, known.vendor)
        )
    answer = cards.torch_facts(host)
    if not answer.ended_well:
        return CHECK.fail(
            "A child that imports torch, then %s, %s." % (module, answer.how()),
            "See the whole error: python -c 'import torch, %s'. Then reinstall %s in the version that the vendor provides for torch %s."
            % (module, module, answer.last.get("torch", "")),
        )
    facts = answer.last
    version = " %s" % facts["module_version"] if facts.get("module_version") else ""
    return CHECK.ok("%s%s, from %s." % (module, version, facts.get("module_file", "")))
