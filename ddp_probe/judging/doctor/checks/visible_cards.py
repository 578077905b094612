"""The visible-device variables leave the ranks their cards."""

import re
from typing import Iterator, List, Tuple

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.shared.accelerators import Accelerator

CHECK = Check(
    id="DOC206",
    slug="visible-cards",
    title="The visible-device variables leave the ranks the cards that they need.",
    looks_at="The vendor's variables, such as CUDA_VISIBLE_DEVICES, and the device files.",
    remedy="Unset the variable, or name cards that exist, each once.",
)


def check(host: Host) -> Answer:
    """Read each variable of the accelerator."""
    known = cards.accelerator(host)
    if known is None:
        return CHECK.skipped("No accelerator is detected.")
    given = [(name, host.environ[name]) for name in known.visible if name in host.environ]
    if not given:
        return CHECK.ok("None of %s is set: every rank sees all cards." % ", ".join(known.visible) if known.visible else "No variable is known.")
    problems = [problem for name, value in given for problem in _problems(host, known, name, value)]
    if problems:
        return CHECK.fail(" ".join(saw for saw, _ in problems), " ".join(dict.fromkeys(remedy for _, remedy in problems)))
    return CHECK.ok("%s." % ", ".join("%s=%s" % pair for pair in given))


def _problems(host: Host, known: Accelerator, name: str, value: str) -> Iterator[Tuple[str, str]]:
    listed = [part.strip() for part in value.split(",") if part.strip()]
    if not listed or listed[0] in ("-1", "NoDevFiles", "none"):
        yield "%s=%s hides every card." % (name, value), "unset %s" % name
        return
    numbers = [int(part) for part in listed if re.fullmatch(r"\d+", part)]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        yield "%s=%s names card %d twice." % (name, value, twice[0]), "export %s=%s" % (name, ",".join(dict.fromkeys(listed)))
    files = cards.device_files(host, known)
    beyond = [number for number in numbers if files and known.one_file_per_card and number >= len(files)]
    if beyond:
        yield "%s=%s names card %d, but the host has %d." % (name, value, beyond[0], len(files)), _within(name, numbers, len(files))
    wanted = host.request.nproc
    if wanted and not twice and not beyond and len(listed) < wanted:
        yield "%s=%s leaves %d cards for %d ranks." % (name, value, len(listed), wanted), "unset %s, or start %d ranks." % (name, len(listed))


def _within(name: str, numbers: List[int], count: int) -> str:
    kept = [str(number) for number in dict.fromkeys(numbers) if number < count]
    return "export %s=%s" % (name, ",".join(kept)) if kept else "unset %s" % name
