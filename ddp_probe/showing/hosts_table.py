"""Prints the table of all hosts of a launch: a row for each, then what failed on which host."""

from collections import Counter
from typing import Dict, Iterator, List, Sequence, Tuple

from ddp_probe.doctor.check import FAIL, OK, SKIPPED, UNKNOWN, WARN
from ddp_probe.doctor.host_meeting import HostMeeting, MetHost
from ddp_probe.showing import paint, safe
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.layout import StyledLine, columns, wrap
from ddp_probe.wording.words import spans

_COLUMNS = ("cards", "torch", "driver", "Python", "mmengine")
"""Facts that are columns, the most wanted first; a narrow page leaves out the last ones."""
_WORDS = {FAIL: "failed", UNKNOWN: "unknown", WARN: "warned", OK: "ok"}


def host_lines(meeting: HostMeeting, width: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield the table and the failures; what the checks of the meeting say is printed with the other checks."""
    yield StyledLine(_title(meeting, say), paint.STRONG)
    yield from _table(meeting, width, say)
    for (slug, saw, remedy), hosts in _failures(meeting.hosts).items():
        yield StyledLine("")
        for text, style in ((say("%s fails on %s") % (slug, ", ".join(hosts)), paint.BAD), (saw, ""), (remedy, paint.ADDED)):
            for line in wrap(text, width, "" if style == paint.BAD else "  ", "  "):
                yield StyledLine(line, style)


def _title(meeting: HostMeeting, say: Language) -> str:
    counts = (say.counted(len(meeting.hosts), "host"), _present(meeting), say.counted(meeting.world, "rank"))
    return safe.line(say("%s, %d of %s at %s") % (*counts, meeting.place))


def _present(meeting: HostMeeting) -> int:
    return meeting.world - len(meeting.absent) if meeting.hosts else 0


def _table(meeting: HostMeeting, width: int, say: Language) -> Iterator[StyledLine]:
    facts = [name for name in _COLUMNS if any(host.facts.get(name) for host in meeting.hosts)]
    while True:
        texts = columns([[say(name) for name in ("host", "ranks", "address", *facts, "checks")], *_rows(meeting, facts, say)])
        if not facts or max(map(safe.width, texts)) + 2 <= width:
            break
        facts = facts[:-1]
    yield StyledLine("  " + texts[0], paint.STRONG)
    for text, bad in zip(texts[1:], [*(bool(host.failed()) for host in meeting.hosts), True]):
        yield StyledLine("  " + text, paint.BAD if bad else "")


def _rows(meeting: HostMeeting, facts: Sequence[str], say: Language) -> Iterator[Tuple[str, ...]]:
    for host in meeting.hosts:
        address = "%s %s" % (host.address, host.interface) if host.interface else host.address
        yield (host.name, spans(host.ranks), address, *(str(host.facts.get(name) or "-") for name in facts), _checks(host, say))
    if meeting.absent:
        yield ("?", spans(meeting.absent), *("-" for _ in ("address", *facts)), say("absent"))


def _checks(host: MetHost, say: Language) -> str:
    counts = Counter(result["status"] for result in host.results if result["status"] != SKIPPED)
    return say(", ").join("%d %s" % (counts[status], say(word)) for status, word in _WORDS.items() if counts[status]) or "-"


def _failures(hosts: Sequence[MetHost]) -> Dict[Tuple[str, str, str], List[str]]:
    """Return each failure with its hosts; the same on several hosts is one."""
    hosts_of: Dict[Tuple[str, str, str], List[str]] = {}
    for host in hosts:
        for result in host.failed():
            hosts_of.setdefault((result["slug"], result["saw"], result["remedy"]), []).append(host.name)
    return hosts_of
