"""Ranks of several groups wait for each other in a circle: each is in a collective of one group that a rank of the next has not come to."""

from typing import Iterator, List

from ddp_probe.diagnose._split_words import explained, of_kind, only_waits, stands
from ddp_probe.diagnose.ledgers import view
from ddp_probe.diagnose.rule import MEDIUM, Finding, Rule, RuleTexts
from ddp_probe.diagnose.words import by_number, capital, named
from ddp_probe.ledger_schema import ranks_of
from ddp_probe.read.model import Run
from ddp_probe.read.splits import CIRCLE, Split

_MOST = 8  # Waits that are told.

RULE = Rule(
    id="DDP641",
    slug="groups-wait-in-a-circle",
    cause="rank_divergent_control_flow",
    title="Ranks of several groups wait for each other in a circle.",
    symptom="The job hangs, and each rank is in a collective that others of its group have not come to, as they wait in another group.",
    evidence="The ledgers: who waits in which group, and for whom; followed from rank to rank, this comes round.",
    remedy="Let all ranks use their groups in one order, for example sorted by their ranks.",
    zh=RuleTexts(
        title="多个进程组的 rank 相互等待，形成环（死锁）。",
        symptom="作业挂起，每个 rank 都在一个集合通信里，而同组的其他 rank 没有来，因为它们在另一个进程组里等待。",
        evidence="账本：谁在哪个进程组里等，在等谁；从一个 rank 追到下一个，最后回到起点。",
        remedy="让所有 rank 按同一顺序使用各自的进程组，例如按组内的 rank 排序。",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Name each rank of the circle, its line, and for whom it waits."""
    found = of_kind(run, CIRCLE)
    if found is None or not only_waits(run):
        return
    waits = [_wait(run, one) for one in found.circle]
    yield RULE.found(
        ranks=found.blame,
        verdict="%s. They wait in a circle, and nothing shows which of them is wrong." % capital("; ".join(waits[:_MOST])),
        evidence=[stands(run, one.here[0]) for one in found.circle[:_MOST]],
        when=found.when,
        remedy="Let all ranks use their groups in one order, for example sorted by ranks: first %s." % ", then ".join(_groups(found)[:4]),
        explains=explained(run),
        confidence=MEDIUM,
    )


def _wait(run: Run, one: Split) -> str:
    here, ranks = named(one.here), one.group.ranks if one.group is not None else ""
    return "%s %s %s in the group of ranks %s, and %s for %s" % (
        here,
        by_number(one.here, "is", "are"),
        view(run).ranks[one.here[0]].where(),
        ranks,
        by_number(one.here, "waits", "wait"),
        named(one.there),
    )


def _groups(found: Split) -> List[str]:
    found_in = {one.group.ranks for one in found.circle if one.group is not None}
    return ["that of ranks %s" % ranks for ranks in sorted(found_in, key=ranks_of)]
