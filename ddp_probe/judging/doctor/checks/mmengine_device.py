"""mmengine knows the accelerator."""

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.skipped("mmengine is not installed.")
    if not reply.ended_well:
        return CHECK.fail("A child that imports mmengine.device %s." % reply.how(), "See the whole error: python -c 'import mmengine.device'.")
    answer, version = reply.last["device"], reply.last["version"]
    if known is None or not cards.count(host):
        return CHECK.ok("mmengine %s returns %r, and there is no card." % (version, answer))
    wanted = cards.device_type(known)
    if str(answer).partition(":")[0] in known.device_types:
        return CHECK.ok("mmengine %s returns %r." % (version, answer))
    return CHECK.fail(
        "mmengine %s returns %r, and torch counts %d %s cards: the model would stay on %s." % (version, answer, cards.count(host), wanted, answer),
        "Start the job with DDP_PROBE=1 DDP_PROBE_FIX=auto DDP_PROBE_DEVICE=%s; or set it before the Runner is built: "
        "import mmengine.device.utils; mmengine.device.utils.DEVICE = '%s'." % (wanted, wanted),
    )
