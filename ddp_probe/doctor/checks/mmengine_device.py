"""mmengine knows the accelerator."""

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="DOC208",
    slug="mmengine-device",
    title="mmengine.device.get_device() returns the accelerator that is present.",
    looks_at="A child that imports the vendor's module, if there is one, and asks mmengine.",
    remedy="Start the job with DDP_PROBE=1 DDP_PROBE_FIX=auto.",
    needs=("torch-imports", "vendor-module"),
)


def check(host: Host) -> Answer:
    """Ask mmengine in a child."""
    known = cards.accelerator(host)
    reply = host.ask("mmengine_facts", cards.importable_module(host, known) if known else "")
    if reply.last.get("installed") is False:
        return CHECK.skipped(say("mmengine is not installed."))
    if not reply.ended_well:
        return CHECK.fail(
            say("A child that imports mmengine.device {how}.", how=reply.how()),
            say("See the whole error: python -c 'import mmengine.device'."),
        )
    device, version = reply.last["device"], reply.last["version"]
    answer = quoted(repr(device))
    if known is None or not cards.count(host):
        return CHECK.ok(say("mmengine {version} returns {answer}, and there is no card.", version=version, answer=answer))
    wanted = cards.device_type(known)
    if str(device).partition(":")[0] in known.device_types:
        return CHECK.ok(say("mmengine {version} returns {answer}.", version=version, answer=answer))
    return CHECK.fail(
        say(
            "mmengine {version} returns {answer}, and torch counts {count} {type} cards: the model would stay on {device}.",
            version=version,
            answer=answer,
            count=cards.count(host),
            type=wanted,
            device=device,
        ),
        say(
            "Start the job with DDP_PROBE=1 DDP_PROBE_FIX=auto DDP_PROBE_DEVICE={type}; or set it before the Runner is built: "
            "import mmengine.device.utils; mmengine.device.utils.DEVICE = '{type}'.",
            type=wanted,
        ),
    )
