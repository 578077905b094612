"""Few ranks are in a collective to which most ranks of the group do not come."""

from typing import Iterator

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import absent, departed, doubt, evidence, explained, in_order, of_kind, only_waits, under_if, waiting
from ddp_probe.judging.rule import MEDIUM, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.standing.splits import ALONE
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, named

RULE = Rule(
    id="DDP633",
    slug="collective-never-called-by-others",
    cause="rank0_only_collective",
    title="One rank is in a collective that most ranks of the group do not call.",
    symptom="The job hangs, or one rank stays behind: its call is under 'if rank == 0', in a logging hook, or after a loop that it left early.",
    evidence="The ledgers: one rank, or a few, are in a collective; most ranks of the group have not begun it and are in no collective before it.",
    remedy="Move the collective out of the branch: all ranks call it, and only one rank prints or writes the result.",
    restart="no",  # The branch stands in the code.
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that call it, and the position of the others."""
    parting = of_kind(run, ALONE)
    if parting is None or not only_waits(run):
        return
    where = at(standings_of(run).ranks[parting.here[0]].site)
    if parting.branch:
        why: str = under_if(parting)
        remedy = say(
            "Move the call of {who}{where} out of the 'if' in line {line}, so that all ranks make it, or remove it.",
            who=named(parting.here),
            where=where,
            line=parting.branch,
        )
    else:
        why = departed(parting)
        remedy = say(
            "Let all ranks make the call of {who}{where}, or none: move it out of the branch.",
            who=named(parting.here),
            where=where,
        )
    stand = say("{waiting:capital}; {absent}.", waiting=waiting(run, parting), absent=absent(run, parting))
    yield RULE.found(
        ranks=parting.blame,
        verdict=say("{parting}{doubt}", parting=in_order(parting, stand, why), doubt=doubt(run, parting)),
        evidence=evidence(run, parting),
        when=parting.when,
        remedy=remedy,
        explains=explained(run),
        confidence="high" if parting.is_sure else MEDIUM,
        cause="" if parting.blame == (0,) else "rank_divergent_control_flow",
    )
