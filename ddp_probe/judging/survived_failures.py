"""Keeps the failures on the page that a job survived before it failed."""

from typing import Dict, List, Sequence, Tuple

from ddp_probe.judging.rule import Finding, explained
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import Failed, Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, named, quoted

_MOST = 6  # Different failures.


def note_survived(run: Run, findings: Sequence[Finding]) -> None:
    """Say in the inventory which failures the job caught and outlived; not those that a finding speaks of."""
    known = set(map(id, explained(findings)))
    alike: Dict[Tuple[str, str], List[Failed]] = {}
    for failure in run.failures:
        if failure.process is not None and not (failure.fatal or failure.consequence or id(failure) in known):
            alike.setdefault((failure.said(120).rstrip("."), at(failure.site)), []).append(failure)
    for (error, where), failures in list(alike.items())[:_MOST]:
        note = say(
            "{who:capital} caught {error}{at}, and went on: nothing shows that what failed later follows from it.",
            who=named(ranks_of(failures)),
            error=quoted(error),
            at=where,
        )
        if note not in run.inventory.notes:
            run.inventory.notes.append(note)
