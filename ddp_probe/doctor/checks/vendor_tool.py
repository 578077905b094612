"""The vendor's tool answers."""

import re
from typing import List

from ddp_probe.doctor import cards, children
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.shared.accelerators import Accelerator
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

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
        if known is None:
            return CHECK.skipped(say("No accelerator is detected."))
        return CHECK.skipped(say("No tool of {vendor} is known.", vendor=known.vendor))
    path = cards.signs(host, known).tool
    if not path:
        return CHECK.skipped(say("{program} is not on PATH.", program=known.smi))
    printed = children.output([path, *known.smi_list[:-1]], host.environ, host.request.seconds)
    code, said = printed.code, printed.text
    if printed.overflowed:
        return CHECK.fail(
            say("{tool} {why}, and was ended.", tool=known.smi, why=printed.why),
            say("Run {tool} yourself, and follow what it says.", tool=known.smi),
        )
    if code is None or code == 127:
        saw = say("{tool} does not answer within {seconds:.0f} s.", tool=known.smi, seconds=host.request.seconds)
        if code:
            saw = say("{tool} does not answer: {said}", tool=known.smi, said=_first(said))
        return CHECK.fail(saw, say("Restart the driver or the host: if the tool hangs, so does the driver."))
    if code:
        return CHECK.fail(
            say("{tool} ended with exit code {code}: {said}", tool=known.smi, code=code, said=_first(said)),
            say("Run {tool} yourself, and follow what it says.", tool=known.smi),
        )
    return _compared(host, known, said)


def _compared(host: Host, known: Accelerator, said: str) -> Answer:
    """Compare the cards that it lists with the device files."""
    listed = listed_cards(known, said)
    details = tuple(quoted(row) for row in listed[:_SHOWN])
    files = cards.device_files(host, known)
    if not listed:
        return CHECK.ok(say("{tool} answers: {said}", tool=known.smi, said=_first(said)))
    if files and known.one_file_per_card and len(files) != len(listed):
        return CHECK.warn(
            say(
                "{tool} lists {count} cards, but there are {files} device files.",
                tool=known.smi,
                count=len(listed),
                files=len(files),
            ),
            say(
                "Give the container all device files of the cards that the job is to use: {tool} lists them.",
                tool=known.smi,
            ),
            details,
        )
    return CHECK.ok(say("{tool} lists {count} cards.", tool=known.smi, count=len(listed)), *details)


def listed_cards(known: Accelerator, said: str) -> List[str]:
    """Return the lines that stand for one card each, if the form of the output is known."""
    if not known.smi_list:
        return []
    return [line.strip() for line in said.splitlines() if re.search(known.smi_list[-1], line)]


def _first(text: str) -> Text:
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w", line)]
    return quoted(lines[0][:200]) if lines else say("nothing")
