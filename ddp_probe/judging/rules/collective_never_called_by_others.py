"""Few ranks are in a collective to which most ranks of the group do not come."""

from typing import Iterator

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import absent, departed, doubt, evidence, explained, in_order, of_kind, only_waits, waiting
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import ALONE
from ddp_probe.wording.words import at, capital, named

RULE = Rule(
    id="DDP633",
    slug="collective-never-called-by-others",
    cause="rank0_only_collective",
    title="One rank is in a collective that most ranks of the group do not call.",
    symptom="The job hangs, or one rank stays behind: its call is under 'if rank == 0', in a logging hook, or after a loop that it left early.",
    evidence="The ledgers: one rank, or a few, are in a collective; most ranks of the group have not begun it and are in no collective before it.",
    remedy="Move the collective out of the branch: all ranks call it, and only one rank prints or writes the result.",
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that call it, and the position of the others."""
    found = of_kind(run, ALONE)
    if found is None or not only_waits(run):
        return
    told, remedy = departed(found), "Let all ranks make the call of %s%s, or none: move it out of the branch."
    if found.branch:
        told = " The call of %s is under the 'if' in line %d, whose branch the others do not take." % (named(found.blame), found.branch)
        remedy = "Move the call of %%s%%s out of the 'if' in line %d, so that all ranks make it, or remove it." % found.branch
    yield RULE.found(
        ranks=found.blame,
        verdict=in_order(found, "%s; %s." % (capital(waiting(run, found)), absent(run, found)), told) + doubt(run, found),
        evidence=evidence(run, found),
        when=found.when,
        remedy=remedy % (named(found.here), at(standings_of(run).ranks[found.here[0]].site)),
        explains=explained(run),
        confidence="high" if found.is_sure else MEDIUM,
        cause="" if found.blame == (0,) else "rank_divergent_control_flow",
    )
