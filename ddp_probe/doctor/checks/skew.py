"""The hosts are alike."""

from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.doctor.host_meeting import HostMeeting, meet, why_not_compared
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

CHECK = Check(
    id="DOC803",
    slug="skew",
    title="The hosts have the same versions, driver, backends, cards and variables, and their clocks agree.",
    looks_at="What each host reports about itself; the clocks, by asking each host for the time.",
    remedy="Make the hosts alike.",
    needs=("hosts-meet",),
    of_hosts=True,
)
_FATAL = ("torch", "vendor module", "backends")  # Ranks that differ in these do not understand each other.
_CLOCK = 2.0  # Seconds. Nothing breaks, but logs cannot be compared.
_UNSET, _NONE = "unset", "none"


class HostSkew(NamedTuple):
    """Something that differs."""

    what: str
    values: Dict[str, List[str]]  # The hosts by what they have, the most frequent first.
    fatal: bool


def check(host: Host) -> Answer:
    """Compare the hosts."""
    because = why_not_compared(host)
    if because:
        return CHECK.skipped(because)
    met = meet(host, ())
    skews, clocks = list(differences(met)), list(_clocks(met))
    if not skews and not clocks:
        alike = say(
            "{count} hosts are alike, and their clocks agree within {seconds:.0f} s.",
            count=len(met.hosts),
            seconds=_CLOCK,
        )
        return CHECK.ok(alike)
    saw = joined([_sentence(each) for each in skews] + [sentence for sentence, _ in clocks])
    remedy = joined([_remedy(each) for each in skews] + [each for _, each in clocks[:1]])
    return CHECK.fail(saw, remedy) if any(each.fatal for each in skews) else CHECK.warn(saw, remedy)


def differences(met: HostMeeting) -> Iterator[HostSkew]:
    """Yield what is not the same on all hosts, the fatal ones first."""
    told = {host.name: host.facts for host in met.hosts if host.facts}
    names = [name for name in next(iter(told.values()), {}) if name != "environment"]
    for name in sorted(names, key=lambda name: name not in _FATAL):
        yield from _compared(name, {host: facts.get(name) or _NONE for host, facts in told.items()}, fatal=name in _FATAL)
    variables = sorted({name for facts in told.values() for name in facts.get("environment", {})})
    for name in variables:
        yield from _compared("$" + name, {host: facts.get("environment", {}).get(name, _UNSET) for host, facts in told.items()}, fatal=False)


def _compared(what: str, values: Dict[str, Any], *, fatal: bool) -> Iterator[HostSkew]:
    by_value: Dict[str, List[str]] = {}
    for value, _ in Counter(map(str, values.values())).most_common():
        by_value[value] = [host for host, each in values.items() if str(each) == value]
    if len(by_value) > 1:
        yield HostSkew(what, by_value, fatal)


def majority(skew: HostSkew) -> Optional[str]:
    """Return what more than half of the hosts have."""
    value, hosts = next(iter(skew.values.items()))
    return value if 2 * len(hosts) > sum(map(len, skew.values.values())) else None


def _sentence(skew: HostSkew) -> Text:
    common = majority(skew)
    odd = []
    for value, hosts in skew.values.items():
        if value != common:
            odd.append(say("{value} on {hosts}", value=_in_words(value), hosts=listed(hosts)))
    if common is None:
        return say("{what} differs: {values}.", what=skew.what, values=listed(odd, by="; "))
    return say(
        "{what} differs: {values}, and {common} on the other {count}.",
        what=skew.what,
        values=listed(odd, by="; "),
        common=_in_words(common),
        count=len(skew.values[common]),
    )


def _in_words(value: str) -> Text:
    if value == _UNSET:
        return say("unset")
    return say("none") if value == _NONE else quoted(value)


def _remedy(skew: HostSkew) -> Text:
    common = majority(skew)
    if common is None:
        return say("Make {what} the same on all hosts.", what=skew.what)
    odd: List[str] = []
    for value, hosts in skew.values.items():
        if value != common:
            odd += hosts
    if not skew.what.startswith("$"):
        return say(
            "On {hosts}, make {what} what the others have: {common}.",
            hosts=listed(odd),
            what=skew.what,
            common=_in_words(common),
        )
    name = skew.what[1:]
    if common == _UNSET:
        return say("On {hosts}, unset {name}.", hosts=listed(odd), name=name)
    return say("On {hosts}, set {name}={value}.", hosts=listed(odd), name=name, value=quoted(common))


def _clocks(met: HostMeeting) -> Iterator[Tuple[Text, Text]]:
    remedy = say("Turn on time synchronisation on all hosts, with: timedatectl set-ntp true")
    other = met.hosts[0].name
    for host, (ahead, doubt) in sorted(met.clocks.items()):
        if abs(ahead) <= _CLOCK + doubt:
            continue
        if ahead > 0:
            yield say("The clock of {host} is {seconds:.1f} s ahead of that of {other}.", host=host, seconds=ahead, other=other), remedy
        else:
            yield say("The clock of {host} is {seconds:.1f} s behind that of {other}.", host=host, seconds=-ahead, other=other), remedy
