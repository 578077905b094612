"""Few ranks are in a collective to which most ranks of the group do not come."""

from typing import Iterator

from ddp_probe.diagnose._split_words import absent, departed, doubt, evidence, explained, of_kind, only_waits, waiting
from ddp_probe.diagnose.ledgers import view
from ddp_probe.diagnose.rule import MEDIUM, Finding, Rule, RuleTexts
from ddp_probe.diagnose.words import at, capital, named
from ddp_probe.read.model import Run
from ddp_probe.read.splits import ALONE

RULE = Rule(
    id="DDP633",
    slug="collective-never-called-by-others",
    cause="rank0_only_collective",
    title="One rank is in a collective that most ranks of the group do not call.",
    symptom="The job hangs, or one rank stays behind: its call stands under 'if rank == 0', in a logging hook, or after a loop that it left early.",
    evidence="The ledgers: one rank, or a few, are in a collective; most ranks of the group have not begun it and are in no collective before it.",
    remedy="Move the collective out of the branch: all ranks call it, and only one prints or writes the result.",
    zh=RuleTexts(
        title="一个 rank 在某个集合通信里，而进程组的大多数 rank 不调用它。",
        symptom="作业挂起，或一个 rank 落在后面：它的调用在 'if rank == 0' 之下、在日志 hook 里，或在它提前离开的循环之后。",
        evidence="账本：一个或少数几个 rank 在某个集合通信里；进程组的大多数 rank 还没有开始它，也不在它之前的任何集合通信里。",
        remedy="把集合通信移出分支：所有 rank 都调用，只由一个 rank 打印或写出结果。",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that call it, and the position of the others."""
    found = of_kind(run, ALONE)
    if found is None or not only_waits(run):
        return
    one = RULE.found(
        ranks=found.blame,
        verdict="%s; %s.%s%s" % (capital(waiting(run, found)), absent(run, found), departed(found), doubt(found)),
        evidence=evidence(run, found),
        when=found.when,
        remedy="Let all ranks make the call of %s%s, or none: move it out of the branch."
        % (named(found.here), at(view(run).ranks[found.here[0]].site)),
        explains=explained(run),
        confidence="high" if found.is_sure else MEDIUM,
    )
    if found.blame != (0,):
        one.cause = "rank_divergent_control_flow"
    yield one
