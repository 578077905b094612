"""The visible-device variables leave the ranks their cards."""

import re
from typing import Iterator, List, Tuple

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.shared.accelerators import Accelerator
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

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
        return CHECK.skipped(say("No accelerator is detected."))
    given = [(name, host.environ[name]) for name in known.visible if name in host.environ]
    if not known.visible:
        return CHECK.ok(say("No variable is known."))
    if not given:
        return CHECK.ok(say("None of {variables} is set: every rank sees all cards.", variables=listed(known.visible)))
    problems: List[Tuple[Text, Text]] = []
    for name, value in given:
        problems += _problems(host, known, name, value)
    if problems:
        remedies = dict.fromkeys(remedy for _, remedy in problems)
        return CHECK.fail(joined([saw for saw, _ in problems]), joined(list(remedies)))
    return CHECK.ok(quoted("%s." % ", ".join("%s=%s" % pair for pair in given)))


def _problems(host: Host, known: Accelerator, name: str, value: str) -> Iterator[Tuple[Text, Text]]:
    """Yield what is wrong with a variable, and what to do."""
    entries = [part.strip() for part in value.split(",") if part.strip()]
    variable = quoted("%s=%s" % (name, value))
    if not entries or entries[0] in ("-1", "NoDevFiles", "none"):
        yield say("{variable} hides every card.", variable=variable), quoted("unset %s" % name)
        return
    numbers = [int(part) for part in entries if re.fullmatch(r"\d+", part)]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        once = quoted("export %s=%s" % (name, ",".join(dict.fromkeys(entries))))
        yield say("{variable} names card {card} twice.", variable=variable, card=twice[0]), once
    files = cards.device_files(host, known)
    beyond = [number for number in numbers if files and known.one_file_per_card and number >= len(files)]
    if beyond:
        saw = say(
            "{variable} names card {card}, but the host has {count}.",
            variable=variable,
            card=beyond[0],
            count=len(files),
        )
        yield saw, _within(name, numbers, len(files))
    wanted = host.request.nproc
    if wanted and not twice and not beyond and len(entries) < wanted:
        yield (
            say(
                "{variable} leaves {cards} cards for {ranks} ranks.",
                variable=variable,
                cards=len(entries),
                ranks=wanted,
            ),
            say("unset {name}, or start {cards} ranks.", name=name, cards=len(entries)),
        )


def _within(name: str, numbers: List[int], count: int) -> Text:
    kept = [str(number) for number in dict.fromkeys(numbers) if number < count]
    return quoted("export %s=%s" % (name, ",".join(kept))) if kept else quoted("unset %s" % name)
