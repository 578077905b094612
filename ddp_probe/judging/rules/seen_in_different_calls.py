"""Ranks wait in different calls of torch.distributed, as looks from outside show."""

from collections import Counter
from typing import Iterator, List

from ddp_probe.judging.looks import INIT, found, others, stances, waiting
from ddp_probe.judging.rule import LOW, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.shared.ledger_schema import PAIRED, ROOTED
from ddp_probe.wording.text import say

_PAIRED = PAIRED | {"batch_isend_irecv"}
_UNEVEN = _PAIRED | ROOTED  # Who is in another call than these may be further on, and right.
_UNTOLD = frozenset(("wait", "torch.distributed", INIT))

RULE = Rule(
    id="DDP689",
    slug="seen-in-different-calls",
    cause="rank_divergent_control_flow",
    title="Ranks wait in different calls of torch.distributed, as looks from outside show.",
    symptom="The job hangs, and every rank is in a call that waits for others.",
    evidence=(
        "The stacks: the names of the calls differ, in each look. Stacks show neither the group nor how many calls came before: if each call "
        "belongs to a different group, the calls may be right. In a broadcast, a gather or a send some ranks return at once, so no single rank "
        "is blamed."
    ),
    remedy="Let all ranks make the same calls in the same order: look at the branch that leads to the call that fewer ranks are in.",
    restart="no",  # The branch stands in the code.
    needs=("process.look",),
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks in the rarer call; all, if none is rarer."""
    inside = waiting(run)
    operations = [stance.operation for stance in inside if stance.operation not in _UNTOLD]
    names = Counter("send or recv" if operation in _PAIRED else operation for operation in operations)
    if len(names) < 2 or others(run) or len(inside) < len(stances(run)):
        return
    usual, most = names.most_common(1)[0]
    tie = sum(count == most for count in names.values()) > 1 or any(stance.operation in _UNEVEN for stance in inside)
    guilty: List[int] = [stance.rank for stance in inside if tie or (stance.operation != usual and stance.operation not in _UNTOLD)]
    chosen = [stance for stance in inside if stance.rank in guilty]
    rest = [stance for stance in inside if stance.rank not in guilty]
    how = say(" (each waits for the others, and stacks do not show which is wrong)") if tie else ""
    yield found(RULE, chosen, rest, how, confidence=LOW)
