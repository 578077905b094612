"""Ranks of several groups wait for each other in a circle: each is in a collective of one group that a rank of the next has not come to."""

from typing import Iterator, List

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import explained, of_kind, only_waits, stands
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.shared.ledger_schema import ranks_of
from ddp_probe.standing.splits import CIRCLE, Split
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named

_MOST = 8  # Waits that are reported.

RULE = Rule(
    id="DDP641",
    slug="groups-wait-in-a-circle",
    cause="rank_divergent_control_flow",
    title="Ranks of several groups wait for each other in a circle.",
    symptom="The job hangs, and each rank is in a collective that others of its group have not reached, because they wait in another group.",
    evidence="The ledgers: who waits in which group, and for whom; followed from rank to rank, this leads back to the first one.",
    remedy="Let all ranks use their groups in the same order, for example sorted by their ranks.",
    restart="no",  # The order of the calls stands in the code.
)


def check(run: Run) -> Iterator[Finding]:
    """Name each rank of the circle, its line, and for whom it waits."""
    circle = of_kind(run, CIRCLE)
    if circle is None or not only_waits(run):
        return
    waits = [_wait(run, split) for split in circle.circle[:_MOST]]
    yield RULE.found(
        ranks=circle.blame,
        verdict=say(
            "{waits:capital}. They wait in a circle, and the logs do not show which of them is wrong.",
            waits=listed(waits, by="; "),
        ),
        evidence=[stands(run, split.here[0]) for split in circle.circle[:_MOST]],
        when=circle.when,
        remedy=say(
            "Let all ranks use their groups in the same order, for example sorted by ranks: first {groups}.",
            groups=listed(_groups(circle)[:4], by=", then "),
        ),
        explains=explained(run),
        confidence=MEDIUM,
    )


def _wait(run: Run, split: Split) -> Text:
    return say(
        "{here} {here:is|are} {where} in the group of ranks {group}, and {here:waits|wait} for {there}",
        here=named(split.here),
        where=standings_of(run).ranks[split.here[0]].where(),
        group=split.group.ranks if split.group is not None else "",
        there=named(split.there),
    )


def _groups(circle: Split) -> List[Text]:
    groups = {split.group.ranks for split in circle.circle if split.group is not None}
    return [say("that of ranks {ranks}", ranks=ranks) for ranks in sorted(groups, key=ranks_of)]
