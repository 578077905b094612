"""The hosts are alike."""

from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.host_meeting import HostMeeting, meet, why_not_compared

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
_UNSET = "unset"


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
        return CHECK.ok("%d hosts are alike, and their clocks agree within %.0f s." % (len(met.hosts), _CLOCK))
    saw = " ".join([_sentence(each) for each in skews] + [sentence for sentence, _ in clocks])
    remedy = " ".join([_remedy(each) for each in skews] + [each for _, each in clocks[:1]])
    return CHECK.fail(saw, remedy) if any(each.fatal for each in skews) else CHECK.warn(saw, remedy)


def differences(met: HostMeeting) -> Iterator[HostSkew]:
    """Yield what is not the same on all hosts, the fatal ones first."""
    told = {host.name: host.facts for host in met.hosts if host.facts}
    names = [name for name in next(iter(told.values()), {}) if name != "environment"]
    for name in sorted(names, key=lambda name: name not in _FATAL):
        yield from _compared(name, {host: facts.get(name) or "none" for host, facts in told.items()}, fatal=name in _FATAL)
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


def _sentence(skew: HostSkew) -> str:
    common = majority(skew)
    if common is None:
        return "%s differs: %s." % (skew.what, "; ".join("%s on %s" % (value, ", ".join(hosts)) for value, hosts in skew.values.items()))
    odd = "; ".join("%s on %s" % (value, ", ".join(hosts)) for value, hosts in skew.values.items() if value != common)
    return "%s differs: %s, and %s on the other %d." % (skew.what, odd, common, len(skew.values[common]))


def _remedy(skew: HostSkew) -> str:
    common = majority(skew)
    odd = ", ".join(host for value, hosts in skew.values.items() if value != common for host in hosts)
    if common is None:
        return "Make %s the same on all hosts." % skew.what
    if not skew.what.startswith("$"):
        return "On %s, make %s what the others have: %s." % (odd, skew.what, common)
    return "On %s, %s." % (odd, "unset %s" % skew.what[1:] if common == _UNSET else "set %s=%s" % (skew.what[1:], common))


def _clocks(met: HostMeeting) -> Iterator[Tuple[str, str]]:
    for host, (ahead, doubt) in sorted(met.clocks.items()):
        if abs(ahead) > _CLOCK + doubt:
            yield (
                "The clock of %s is %.1f s %s that of %s." % (host, abs(ahead), "ahead of" if ahead > 0 else "behind", met.hosts[0].name),
                "Turn on time synchronisation on all hosts, with: timedatectl set-ntp true",
            )
