"""Ranks run different versions of Python, torch or a library beside it."""

from typing import Dict, Iterator, List, Optional, Set

from ddp_probe.judging.rule import NO, WARNING, Finding, Printed, Rule, line
from ddp_probe.judging.skews import Skew, compare, started
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, quoted

# What the probe itself needs, and training does not.
_ASIDE = frozenset(("wrapt", "msgspec", "structlog", "rich", "cloudpickle"))

RULE = Rule(
    id="DDP801",
    slug="version-skew",
    cause="version_skew_across_nodes",
    title="Ranks run different versions.",
    symptom="Often nothing at all: models, checkpoints or collectives differ in detail between ranks; sometimes a hang or a truncated message.",
    evidence=(
        "The versions that each rank recorded at its start, compared. The odd ranks are those that differ from the majority or, "
        "if there are two halves, from the launcher."
    ),
    remedy=(
        "Install the same versions on all hosts, and look at what comes first on sys.path of the odd ranks: python -c 'import <package>; "
        "print(<package>.__file__)'."
    ),
    restart="elsewhere",  # The hosts keep their versions; hosts with one version run the job.
    needs=("process.start",),
    printed=(
        # NCCL's first message has another length in another version.
        Printed(
            r"bootstrap\.cc[^\n]*Message truncated|connecting to address [^\n]*with family 0 is neither AF_INET",
            says="NCCL's first messages do not match between two hosts, as with two versions of NCCL.",
            ranks=False,
        ),
        Printed(
            r"(?:HCCL|CANN) versions are inconsistent[^\n]{1,90}?local[_ ]version(?: is)? \[?(?P<here>[\w.]+)[^\n]{1,40}?"
            r"remote[_ ]version(?: is)? \[?(?P<there>[\w.]+)",
            says="Two hosts have different versions of CANN or HCCL: {here} and {there}.",
            ranks=False,
        ),
        Printed(
            r"[Mm]ismatched NCCL version|NCCL version mismatch|ranks? (?:have|has|with|use)[^\n]{0,20}different (?:PyTorch|torch|NCCL|CUDA) versions?"
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the versions of all ranks by name."""
    all_skews = skews(run)
    if not all_skews:
        return
    first = next((skew for skew in all_skews if skew.name == "torch"), all_skews[0])
    others = [skew.name for skew in all_skews if skew is not first and skew.name != "torch.git"]
    shown = set(first.ranks or first.all)
    evidence = [line(LogLine(process.file, 1), _version(process.rank, first)) for process in run.processes if process.rank in shown]
    yield RULE.found(
        ranks=first.ranks,
        verdict=say(
            "The ranks run different versions of {package}: {versions}{others}.",
            package=first.name,
            versions=first.told(say("none")),
            others=say("; {names} {names:differs|differ} too", names=listed(others)) if others else "",
        ),
        evidence=evidence[:4],
        when=min(process.start_when for process in run.processes),
        remedy=_install(first),
        severity=WARNING,
        restart="" if _of_hosts(run, first) else NO,
    )


def _of_hosts(run: Run, skew: Skew) -> bool:
    """Tell whether it is hosts that differ: two versions on one host are a matter of the job."""
    versions_on: Dict[str, Set[Optional[str]]] = {}
    for process in run.processes:
        if process.rank is not None:
            versions_on.setdefault(process.host, set()).add(skew.all.get(process.rank))
    return all(len(versions) == 1 for versions in versions_on.values())


def _version(rank: Optional[int], skew: Skew) -> Text:
    version = skew.all.get(rank or 0)
    if not version:
        return say("rank {rank}: {package} not installed", rank=rank, package=skew.name)
    return say("rank {rank}: {package} {version}", rank=rank, package=skew.name, version=version)


def _install(skew: Skew) -> Text:
    module = _module(skew.name)
    facts = {"package": skew.name, "command": quoted("python -c 'import %s; print(%s.__file__)'" % (module, module))}
    if not skew.usual:
        return say(
            "Install {package} in one version on all hosts, or remove the other one from sys.path there ({command}).",
            **facts,
        )
    return say(
        "Install {package} {version} for {who}, or remove the other one from sys.path there ({command}).",
        version=skew.usual,
        who=named(skew.ranks),
        **facts,
    )


def skews(run: Run) -> List[Skew]:
    """Return the packages whose versions differ."""
    compared = [_compare(run, name) for name in _names(run)]
    return [skew for skew in compared if skew is not None]


def _names(run: Run) -> List[str]:
    names: Set[str] = set()
    for process in run.processes:
        if process.rank is not None:
            names.update(process.started.versions)
    return sorted(names - _ASIDE)


def _compare(run: Run, name: str) -> Optional[Skew]:
    """Compare one package; a rank that did not record it, because its program never imports it, does not count."""
    values = {
        process.rank: process.started.versions[name] for process in run.processes if process.rank is not None and name in process.started.versions
    }
    launchers = [start.versions[name] for start in started(run) if name in start.versions]
    same = {} if name == "torch" else _labels([*values.values(), *launchers])
    return compare(name, {rank: same.get(value, value) for rank, value in values.items()}, [same.get(value, value) for value in launchers])


def _labels(versions: List[str]) -> Dict[str, str]:
    """Return the versions whose local label says nothing, each with the version to compare it by.

    Of 0.28.0+cu130 and 0.28.0 one may be __version__ and the other a wheel's name, which often lacks the label; 0.28.0+cpu differs from 0.28.0+cu130.
    """
    of: Dict[str, Set[str]] = {}
    for version in versions:
        of.setdefault(version.partition("+")[0], set()).add(version)
    labels: Dict[str, str] = {}
    for public, alike in of.items():
        if public in alike and len(alike) == 2:
            labels.update(dict.fromkeys(alike, public))
    return labels


def _module(name: str) -> str:
    return "sys" if name == "python" else name.partition(".")[0]
