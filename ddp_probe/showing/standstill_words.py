"""What a launcher says while its ranks stand still: one line with the finding, or nothing if they do not wait for each other."""

import sys
from dataclasses import replace
from typing import Dict, List, Sequence

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.rule import ERROR, Finding
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run
from ddp_probe.showing import brief_form, language, safe
from ddp_probe.showing.paths import Paths
from ddp_probe.wording.text import about, say
from ddp_probe.wording.words import listed, named

_WORKS = ("rank-works-while-others-wait", "rank-not-in-init-process-group", "rank-never-started")
_PLACES = 4


def main(arguments: Sequence[str]) -> int:
    """Print the line; return 0."""
    for text in lines(judge(load(list(arguments)))):
        sys.stdout.write(text + "\n")
    return 0


def lines(diagnosis: Diagnosis) -> List[str]:
    """Return the line: what is wrong, or that a rank is at work that the others wait for, or where each rank is and why that is undecided.

    A file is named in full the first time only: the line is one of many on stderr.
    """
    shortened, reader = Paths(diagnosis.run), language.english()
    errors = [finding for finding in diagnosis.findings if finding.severity == ERROR]
    if errors:
        return [brief_form.finding(replace(errors[0], verdict=shortened(errors[0].verdict, reader)))]
    works = [finding for finding in diagnosis.findings if finding.slug in _WORKS]
    if works:
        return [_note(replace(works[0], verdict=shortened(works[0].verdict, reader)))]
    places = shortened(_places(diagnosis.run), reader)
    return [safe.line("Undecided: %s." % places, brief_form.LONGEST)] if places else []


def _note(finding: Finding) -> str:
    """Say calmly what is known to take long and may still end."""
    text = say(
        "{id} {slug} [{who}] note: {verdict} Nothing is wrong if that takes so long.",
        id=finding.id,
        slug=finding.slug,
        who=named(finding.ranks),
        verdict=finding.verdict,
    )
    return safe.line(text, brief_form.LONGEST)


def _places(run: Run) -> str:
    """Return where each rank is, alike ranks together; empty if no rank is in a call."""
    standings = standings_of(run).ranks
    if all(standing.inside is None for standing in standings.values()):
        return ""
    ranks_of: Dict[str, List[int]] = {}
    for rank, standing in standings.items():
        ranks_of.setdefault(standing.where(), []).append(rank)
    places = sorted(ranks_of.items(), key=lambda pair: -len(pair[1]))
    parts = ["%s %s" % (named(ranks), about(where, ranks=named(ranks))) for where, ranks in places]
    if len(ranks_of) == 1 and not run.missing:
        return say("{places}, and no rank is missing there", places=listed(parts, _PLACES))
    return listed(parts, _PLACES)
