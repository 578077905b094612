"""The vendor's tool answers."""

import re
from typing import List

from ddp_probe.judging.doctor import cards, children
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.shared.accelerators import Accelerator

CHECK = Check(
    id="DOC205",
    slug="vendor-tool",
    title="The vendor's tool answers, and lists as many cards as there are device files.",
    looks_at="The output of nvidia-smi, efsmi, npu-smi, cnmon, mthreads-gmi, xpu-smi, hl-smi or rocm-smi.",
    remedy="See what the tool says; without it, a fault of the driver or of a card cannot be told from a broken plugin.",
)
_SHOWN = 8


def check(host: Host) -> Answer:
    """Run the tool with a time limit."""
    known = cards.accelerator(host)
    if known is None or not known.smi:
        return CHECK.skipped("No accelerator is detected." if known is None else "No tool of %s is known." % known.vendor)
    path = cards.signs(host, known).tool
    if not path:
        return CHECK.skipped("%s is not on PATH." % known.smi)
    printed = children.output([path, *known.smi_list[:-1]], host.environ, host.request.seconds)
    code, said = printed.code, printed.text
    if printed.overflowed:
        return CHECK.fail("%s %s, and was ended." % (known.smi, printed.why), "Run %s yourself, and follow what it says." % known.smi)
    if code is None or code == 127:
        return CHECK.fail(
            "%s does not answer%s" % (known.smi, ": %s" % _first(said) if code else " within %.0f s." % host.request.seconds),
            "Restart the driver or the host: if the tool hangs, so does the driver.",
        )
    if code:
        return CHECK.fail("%s ended with exit code %d: %s" % (known.smi, code, _first(said)), "Run %s yourself, and follow what it says." % known.smi)
    return _compared(host, known, said)


def _compared(host: Host, known: Accelerator, said: str) -> Answer:
    """Compare the cards that it lists with the device files."""
    listed = listed_cards(known, said)
    files = cards.device_files(host, known)
    if not listed:
        return CHECK.ok("%s answers: %s" % (known.smi, _first(said)))
    if files and known.one_file_per_card and len(files) != len(listed):
        return CHECK.warn(
            "%s lists %d cards, but there are %d device files." % (known.smi, len(listed), len(files)),
            "Give the container all device files of the cards that the job is to use: %s lists them." % known.smi,
            tuple(listed[:_SHOWN]),
        )
    return CHECK.ok("%s lists %d cards." % (known.smi, len(listed)), *listed[:_SHOWN])


def listed_cards(known: Accelerator, said: str) -> List[str]:
    """Return the lines that stand for one card each, if the form of the output is known."""
    if not known.smi_list:
        return []
    return [line.strip() for line in said.splitlines() if re.search(known.smi_list[-1], line)]


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w", line)]
    return lines[0][:200] if lines else "nothing"
