"""The host has an accelerator, and torch can count its cards."""

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted

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
        return CHECK.skipped(say("The CPU is asked for."))
    if known is None:
        return _none(host)
    signs, counted, kind = cards.signs(host, known), cards.count(host), cards.device_type(known)
    if counted:
        files: str = ""
        if signs.files:
            files = say(", and there are {count} device files", count=len(signs.files))
        saw = say("torch counts {count} {kind} cards{files}.", count=counted, kind=kind, files=files)
        return CHECK.ok(saw)
    if not signs.files:
        return CHECK.fail(
            say(
                "torch counts no {kind} card, and no device file matches {patterns}.",
                kind=kind,
                patterns=_patterns(host, known.device_files),
            )
        )
    return CHECK.fail(
        say(
            "There are {count} device files ({first}), but torch counts no {kind} card.",
            count=len(signs.files),
            first=quoted(signs.files[0]),
            kind=kind,
        ),
        say(
            "See what the vendor's tool{tool} says, and whether torch was built for these cards (DOC101) or its plugin is installed (DOC201).",
            tool=say(" ({tool})", tool=known.smi) if known.smi else "",
        ),
    )


def _none(host: Host) -> Answer:
    if host.request.device:
        device = quoted(repr(host.request.device))
        return CHECK.fail(
            say("No accelerator is known whose devices are called {device}.", device=device),
            say("Use one of {devices}.", devices=listed(cards.names())),
        )
    return CHECK.warn(
        say(
            "No accelerator: no device file, no vendor module, no vendor tool, and torch counts no card. A job here runs on the CPU, with gloo.",
        ),
        say(
            "If the host has cards, start the container with them (--gpus all, --device=/dev/..., --gres of the scheduler).",
        ),
    )


def _patterns(host: Host, patterns: "tuple[str, ...]") -> Text:
    if not patterns:
        return say("its patterns (it has none)")
    return listed([quoted("%s/%s" % (host.dev, pattern)) for pattern in patterns], by=" or ")
