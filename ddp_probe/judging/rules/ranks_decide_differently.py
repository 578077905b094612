"""A rank left the sequence of calls and passes that all ranks share, because a statement of the job decided otherwise on it."""

from typing import Iterator, List, Sequence

from ddp_probe.judging import left_sequence
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.parted import aborted, doubt, evidence, explained, of_kind, only_waits
from ddp_probe.judging.rule import MEDIUM, Evidence, Finding, Rule
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.standing.condition_values import differing, side_by_side, values_at
from ddp_probe.standing.sequence import SequenceParting
from ddp_probe.standing.splits import DECIDED

_MOST = 6  # Pieces of evidence.

RULE = Rule(
    id="DDP602",
    slug="ranks-decide-differently",
    cause="rank_divergent_control_flow",
    title="A branch of the job was taken on some ranks and not on others.",
    symptom="The job hangs, times out or aborts in a collective that has nothing to do with it, often many steps later.",
    evidence=(
        "The ledgers hold each rank's calls, forward and backward passes, optimizer steps and batches in one sequence. The first entry at which the "
        "ranks differ, and the job's source between that and the entry before, name the statement."
    ),
    remedy="Let all ranks take the same branch: all_reduce what decides, or decide on one rank and broadcast the decision.",
)


def check(run: Run) -> Iterator[Finding]:
    """Name who left, after which entry, and the statement that decided."""
    found = of_kind(run, DECIDED)
    left = found.sequence if found is not None else None
    if found is None or left is None or not only_waits(run):
        return
    yield RULE.found(
        ranks=found.blame,
        verdict="%s%s" % (left_sequence.told(left), doubt(run, found)),
        evidence=_once([*_evidence(run, left), *(evidence(run, found) if found.here else [])]),
        when=found.when,
        remedy=left_sequence.remedy(left),
        explains=[*explained(run), *aborted(run)],
        confidence="high" if left.is_sure and (left.decision is None or left.decision.is_sure) else MEDIUM,
        cause="uneven_batches" if left.made is not None and left.made.ends_loader else "",
    )


def _evidence(run: Run, left: SequenceParting) -> Iterator[Evidence]:
    """Yield the statement that decided, and the lines of both sides."""
    ranks = standings_of(run).ranks
    for statement in left.decision.statements[:2] if left.decision is not None else ():
        decisive = left_sequence.statement_site(statement)
        yield Evidence(ranks[left.ranks[0]].ledger.path, 1, decisive, statement.text + _values(run, decisive, statement.names))
    for entry, rank in ((left.made, left.ranks[0]), (left.usual, (left.others or left.ranks)[-1])):
        site = as_site(entry.site) if entry is not None else None
        if entry is not None and site is not None:
            yield Evidence(ranks[rank].ledger.path, entry.record, site, "rank %d: %s" % (rank, left_sequence.spoken_entry(entry)))


def _values(run: Run, site: Site, names: Sequence[str]) -> str:
    """Say which values the names of the condition had on the ranks, if they were kept and differ."""
    ranks = standings_of(run).ranks
    kept = {rank: values_at(ranks[rank].process, site, names) for rank in ranks}
    said = side_by_side(differing(kept))
    return ": %s" % said if said else ""


def _once(items: Sequence[Evidence]) -> List[Evidence]:
    """Return the first piece of evidence of each line: the report shows the source of the line that most are about."""
    lines = {(item.site.file, item.site.line) if item.site is not None else ("", 0): item for item in reversed(items)}
    return [item for item in items if item in lines.values()][:_MOST]
