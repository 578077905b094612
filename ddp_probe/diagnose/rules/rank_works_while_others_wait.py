"""A rank evaluates, saves or loads while the others wait for it in a collective."""

from typing import Iterator

from ddp_probe.diagnose._split_words import absent, doubt, evidence, explained, of_kind, only_waits, waiting
from ddp_probe.diagnose.ledgers import view
from ddp_probe.diagnose.rule import ERROR, HIGH, MEDIUM, WARNING, Finding, Rule, RuleTexts
from ddp_probe.diagnose.words import capital, clock, named
from ddp_probe.read.model import Run
from ddp_probe.read.splits import WORKING

RULE = Rule(
    id="DDP637",
    slug="rank-works-while-others-wait",
    cause="rank0_long_work_timeout",
    title="A rank evaluates, saves or loads while the others wait for it.",
    symptom="The other ranks stand in a collective, and give up with a timeout if the work takes longer than that.",
    evidence=(
        "The ledgers: the missing rank is in a phase that is known to take long, or goes on while the others wait. Or its stacks: it is in a "
        "function that evaluates or saves, as its name says, or it was at different lines. While it runs this is a warning: it may come."
    ),
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
    zh=RuleTexts(
        title="一个 rank 在评估、保存或加载，其他 rank 在等它。",
        symptom="其他 rank 停在集合通信里；如果这项工作用时超过超时时间，它们就超时放弃。",
        evidence="账本：缺席的 rank 处于已知耗时较长的阶段，或者在其他 rank 等待时仍在前进。或者它的调用栈：它在一个从名称看就是评估或保存的函数里，"
        "或先后处于不同的行。作业还在运行时这是警告：它可能会来。",
        remedy="把工作分给所有 rank，或给进程组更多时间：init_process_group(…, timeout=datetime.timedelta(hours=2))。",
    ),
    severity=WARNING,
    fix="timeout",
)


def check(run: Run) -> Iterator[Finding]:
    """Warn while it works; once the others have given up, it is what ended the job."""
    found = of_kind(run, WORKING)
    if found is None or not only_waits(run):
        return
    lost = explained(run)
    there = [view(run).ranks[rank] for rank in found.there]
    loops = [one for one in there if one.own is not None and not one.own.task]
    moving = [one for one in there if not one.is_working]
    told = " %s still moved at %s." % (capital(named([one.rank for one in moving])), clock(moving[0].moved())) if moving else ""
    yield RULE.found(
        ranks=found.blame,
        verdict="%s; %s.%s%s" % (capital(absent(run, found)), waiting(run, found), told, doubt(found)),
        evidence=evidence(run, found),
        when=found.when,
        remedy="Share the work of %s among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).%s"
        % (named(found.there), " If that line is in a loop that waits for something, look at what it waits for." if loops else ""),
        explains=lost,
        severity=ERROR if lost else WARNING,
        confidence=MEDIUM if loops or moving else HIGH,
    )
