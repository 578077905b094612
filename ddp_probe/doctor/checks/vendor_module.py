"""The vendor's module can be imported."""

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

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
        if known is None:
            return CHECK.skipped(say("No accelerator is detected."))
        return CHECK.skipped(say("torch itself supports {type}.", type=cards.device_type(known)))
    module = cards.importable_module(host, known)
    if not module:
        names = listed(known.modules, by=" or ")
        return CHECK.fail(
            say("No {modules} is installed for this Python.", modules=names),
            say(
                "Install {modules}, as the vendor ({vendor}) provides it for this torch.",
                modules=names,
                vendor=known.vendor,
            ),
        )
    answer = cards.torch_facts(host)
    if not answer.ended_well:
        return CHECK.fail(
            say("A child that imports torch, then {module}, {how}.", module=module, how=answer.how()),
            say(
                "See the whole error: python -c 'import torch, {module}'. "
                "Then reinstall {module} in the version that the vendor provides for torch {version}.",
                module=module,
                version=answer.last.get("torch", ""),
            ),
        )
    facts = answer.last
    name = "%s %s" % (module, facts["module_version"]) if facts.get("module_version") else module
    return CHECK.ok(say("{module}, from {file}.", module=name, file=quoted(facts.get("module_file", ""))))
