"""Ranks run different versions of Python, torch or a library beside it."""

from typing import Iterator, List, Optional

from ddp_probe.diagnose import _skew
from ddp_probe.diagnose.rule import WARNING, Example, Finding, Printed, Rule, RuleTexts, line
from ddp_probe.diagnose.words import named
from ddp_probe.read.logged_call import LogLine
from ddp_probe.read.model import Run

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
    zh=RuleTexts(
        title="各 rank 使用的版本不同。",
        symptom="常常没有任何现象：模型、检查点或集合通信在 rank 之间有细节差异；有时挂起，或消息被截断。",
        evidence="比较各 rank 启动时记录的版本。异常的 rank 是与多数不同的那些；如果两种各占一半，则是与启动器不同的那些。",
        remedy="在所有主机上安装相同的版本，并查看异常的 rank 的 sys.path 上排在最前的是什么：python -c 'import <package>; "
        "print(<package>.__file__)'。",
    ),
    needs=("process.start",),
    printed=(
        # NCCL's first message has another length in another version.
        Printed(
            r"bootstrap\.cc[^\n]*Message truncated|connecting to address [^\n]*with family 0 is neither AF_INET",
            says="NCCL's first messages do not match between two hosts, as with two versions of NCCL.",
            ranks=False,
        ),
        Printed(
            r"[Mm]ismatched NCCL version|NCCL version mismatch|ranks? (?:have|has|with|use)[^\n]{0,20}different (?:PyTorch|torch|NCCL|CUDA) versions?"
        ),
    ),
)

EXAMPLES = (
    Example(
        "Rank 1 has another mmengine than rank 0 and the launcher.",
        """
{"event":"launcher.start","launcher":"torchrun","versions":{"mmengine":"0.10.7"}}
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"versions":{"mmengine":"0.10.7"},"launcher":"torchrun"}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"versions":{"mmengine":"0.8.4"},"launcher":"torchrun"}
""",
        ranks=(1,),
        job="13_mixed_versions",
    ),
    Example(
        "One of three ranks has another torch.",
        """
{"event":"process.start","rank":0,"local_rank":0,"world_size":3,"versions":{"python":"3.10.2","torch":"2.1.0"}}
{"event":"process.start","rank":1,"local_rank":1,"world_size":3,"versions":{"python":"3.10.2","torch":"2.1.0"}}
{"event":"process.start","rank":2,"local_rank":0,"world_size":3,"host":"node2","versions":{"python":"3.10.2","torch":"2.0.1"}}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":2,"host":"node2","span":1}
""",
        ranks=(2,),
    ),
    Example(
        "The launcher has a library that no rank has imported.",
        """
{"event":"launcher.start","launcher":"torchrun","versions":{"torch":"2.1.0","mmcv":"2.1.0"}}
{"event":"process.start","rank":0,"local_rank":0,"world_size":2,"versions":{"torch":"2.1.0","wrapt":"1.16.0"}}
{"event":"process.start","rank":1,"local_rank":1,"world_size":2,"versions":{"torch":"2.1.0","wrapt":"1.15.0"}}
""",
        answer="clear",
    ),
    Example("A library compares the versions itself.", "RuntimeError: NCCL version mismatch: rank 0 has 2.18.5, rank 8 has 2.14.3\n"),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the versions of all ranks by name."""
    found = skews(run)
    if not found:
        return
    first = next((skew for skew in found if skew.name == "torch"), found[0])
    others = [skew.name for skew in found if skew is not first and skew.name != "torch.git"]
    ranks, shown = first.ranks, set(first.ranks or first.all)
    evidence = [
        line(LogLine(process.file, 1), "rank %s: %s %s" % (process.rank, first.name, first.all.get(process.rank or 0) or "not installed"))
        for process in run.processes
        if process.rank in shown
    ]
    yield RULE.found(
        ranks=ranks,
        verdict="The ranks run different versions of %s: %s%s."
        % (first.name, first.told("none"), "; %s %s too" % (", ".join(others), "differs" if len(others) == 1 else "differ") if others else ""),
        evidence=evidence[:4],
        when=min(process.start_when for process in run.processes),
        remedy="Install %s %s%s, or remove the other one from sys.path there (python -c 'import %s; print(%s.__file__)')."
        % (
            first.name,
            first.usual or "in one version",
            " for " + named(ranks) if ranks else " on all hosts",
            _module(first.name),
            _module(first.name),
        ),
        severity=WARNING,
    )


def skews(run: Run) -> List[_skew.Skew]:
    """Return the packages whose versions differ."""
    return [skew for name in _names(run) for skew in [_compare(run, name)] if skew is not None]


def _names(run: Run) -> List[str]:
    names = {name for process in run.processes if process.rank is not None for name in process.started.versions}
    return sorted(names - _ASIDE)


def _compare(run: Run, name: str) -> Optional[_skew.Skew]:
    """Compare one package; a rank that did not record it, because its program never imports it, does not count."""
    values = {
        process.rank: process.started.versions[name] for process in run.processes if process.rank is not None and name in process.started.versions
    }
    launchers = [start.versions[name] for start in _skew.started(run) if name in start.versions]
    return _skew.compare(name, values, launchers)


def _module(name: str) -> str:
    return "sys" if name == "python" else name.partition(".")[0]
