"""The host has an accelerator, and torch can count its cards."""

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC203",
    slug="cards-present",
    title="The host has an accelerator, and torch counts its cards.",
    looks_at="Device files, installed vendor modules, vendor tools, and the count of cards by torch in a child.",
    remedy=(
        "Start the container with the cards (--gpus all, --device=/dev/..., --gres of the scheduler), or choose the CPU: --device cpu --backend gloo."
    ),
    needs=("torch-imports", "vendor-module", "visible-cards", "device-files-open"),
)


def check(host: Host) -> Answer:
    """Compare the signs with torch's count."""
    known = cards.accelerator(host)
    if host.request.device == "cpu":
        return CHECK.skipped("The CPU is asked for.")
    if known is None:
        return _none(host)
    signs, counted = cards.signs(host, known), cards.count(host)
    if counted:
        return CHECK.ok("torch counts %d %s cards%s." % (counted, cards.device_type(known), _files(len(signs.files))))
    if not signs.files:
        return CHECK.fail("torch counts no %s card, and no device file matches %s." % (cards.device_type(known), _patterns(host, known.device_files)))
    return CHECK.fail(
        "There are %d device files (%s), but torch counts no %s card." % (len(signs.files), signs.files[0], cards.device_type(known)),
        "See what the vendor's tool%s says, and whether torch was built for these cards (DOC101) or its plugin is installed (DOC201)."
        % (" (%s)" % known.smi if known.smi else ""),
    )


def _none(host: Host) -> Answer:
    if host.request.device:
        return CHECK.fail("No accelerator is known whose devices are called %r." % host.request.device, "Use one of %s." % ", ".join(cards.names()))
    return CHECK.warn(
        "No accelerator: no device file, no vendor module, no vendor tool, and torch counts no card. A job here runs on the CPU, with gloo.",
        "If the host has cards, start the container with them (--gpus all, --device=/dev/..., --gres of the scheduler).",
    )


def _files(number: int) -> str:
    return ", and there are %d device files" % number if number else ""


def _patterns(host: Host, patterns: "tuple[str, ...]") -> str:
    return " or ".join("%s/%s" % (host.dev, pattern) for pattern in patterns) or "its patterns (it has none)"
