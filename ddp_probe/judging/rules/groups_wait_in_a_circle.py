"""Ranks of several groups wait for each other in a circle: each is in a collective of one group that a rank of the next has not come to."""

from typing import Iterator, List

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import explained, of_kind, only_waits, stands
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.shared.ledger_schema import ranks_of
from ddp_probe.standing.splits import CIRCLE, Split
from ddp_probe.wording.words import by_number, capital, named

_MOST = 8  # Waits that are reported.

RULE = Rule(
    id="DDP641",
    slug="groups-wait-in-a-circle",
    cause="rank_divergent_control_flow",
    title="Ranks of several groups wait for each other in a circle.",
    symptom="The job hangs, and each rank is in a collective that others of its group have not reached, because they wait in another group.",
    evidence="The ledgers: who waits in which group, and for whom; followed from rank to rank, this leads back to the first one.",
    remedy="Let all ranks use their groups in the same order, for example sorted by their ranks.",
)


def check(run: Run) -> Iterator[Finding]:
    """Name each rank of the circle, its line, and for whom it waits."""
    found = of_kind(run, CIRCLE)
    if found is None or not only_waits(run):
        return
    waits = [_wait(run, one) for one in found.circle]
    yield RULE.found(
        ranks=found.blame,
        verdict="%s. They wait in a circle, and the logs do not show which of them is wrong." % capital("; ".join(waits[:_MOST])),
        evidence=[stands(run, one.here[0]) for one in found.circle[:_MOST]],
        when=found.when,
        remedy="Let all ranks use their groups in the same order, for example sorted by ranks: first %s." % ", then ".join(_groups(found)[:4]),
        explains=explained(run),
        confidence=MEDIUM,
    )


def _wait(run: Run, one: Split) -> str:
    here, ranks = named(one.here), one.group.ranks if one.group is not None else ""
    return "%s %s %s in the group of ranks %s, and %s for %s" % (
        here,
        by_number(one.here, "is", "are"),
        standings_of(run).ranks[one.here[0]].where(),
        ranks,
        by_number(one.here, "waits", "wait"),
        named(one.there),
    )


def _groups(found: Split) -> List[str]:
    found_in = {one.group.ranks for one in found.circle if one.group is not None}
    return ["that of ranks %s" % ranks for ranks in sorted(found_in, key=ranks_of)]
