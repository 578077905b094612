"""What DDP_PROBE_FIX changed in a run and what it declined, with equal changes of several ranks merged."""

from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.judging.nevertheless import changed
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, named, quoted


class Made(NamedTuple):
    """One applied or declined change."""

    remedy: str
    ranks: List[int]
    applied: bool
    site: Optional[Site]
    before: Dict[str, str]
    after: Dict[str, str]
    because: str


def made(run: Run) -> List[Made]:
    """Return the changes in the order of the first rank."""
    changes: Dict[Tuple[str, bool, str, str], Made] = {}
    for process in run.processes:
        events: List[Union[schema.Remedied, schema.Declined]] = [call.begin for call in process.calls(schema.Remedied)]
        events += [call.begin for call in process.calls(schema.Declined)]
        for event in events:
            site = "%s:%d" % (event.site.file, event.site.line) if event.site else ""
            applied = isinstance(event, schema.Remedied)
            before, after = (event.before, event.after) if isinstance(event, schema.Remedied) else ({}, {})
            key = (event.remedy, applied, site, event.because)
            remedied = changes.setdefault(key, Made(event.remedy, [], applied, event.site, before, after, event.because))
            if process.rank is not None and process.rank not in remedied.ranks:
                remedied.ranks.append(process.rank)
    return list(changes.values())


def sentences(run: Run) -> List[Text]:
    """Return a sentence for each change."""
    return [_sentence(change) for change in made(run)]


def _sentence(change: Made) -> Text:
    who = named(sorted(change.ranks)) if change.ranks else say("the process")
    because = quoted(change.because)
    if not change.applied:
        template = "{remedy} did nothing on {who}{where}: {because}."
        return say(template, remedy=change.remedy, who=who, where=at(change.site), because=because)
    return say(
        "{remedy} on {who}{where}: {change}, because {because}.",
        remedy=change.remedy,
        who=who,
        where=at(change.site),
        change=changed(change.before, change.after),
        because=because,
    )
