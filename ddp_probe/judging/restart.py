"""Whether a restart helps: what the rule says of the cause, unless the attempts before this one tell more."""

from typing import List, NamedTuple, Optional, Tuple

from ddp_probe.judging import card_use
from ddp_probe.judging.attempts import Attempt, attempt, story
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import AFTER, ELSEWHERE, NO, UNKNOWN, YES, Finding, HostCard
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, listed, quoted

_OF_CARDS = ("card-broken", "card-slowed-down", "stale-process-holds-card")
"""What is wrong with one card of a host, and not with all of them."""
_MANY = 3  # Attempts in a row that do not go on: more than chance.


class Advice(NamedTuple):
    """Whether a restart helps, and how."""

    helps: str  # One of RESTARTS.
    because: Text  # One sentence.
    hosts: Tuple[str, ...] = ()  # To be left out.
    cards: Tuple[HostCard, ...] = ()  # The same; if there are some, their hosts can stay.
    checkpoint: str = ""  # What the next attempt goes on from.
    attempts: Tuple[str, ...] = ()  # The names of those that were compared, this one last.
    is_open: bool = False  # Nothing is known: a page for a person says nothing of it.


def advice(diagnosis: Diagnosis) -> Optional[Advice]:
    """Return what to do; None if nothing failed. Other runs are read once."""
    if diagnosis.exit_code() == 0:
        return None
    key = (advice, tuple(finding.verdict for finding in diagnosis.findings))
    if key not in diagnosis.run.facts:
        diagnosis.run.facts[key] = _advice(diagnosis)
    answer: Advice = diagnosis.run.facts[key]
    return answer


def _advice(diagnosis: Diagnosis) -> Advice:
    this = attempt(diagnosis)
    past = story(diagnosis.run)
    answer = _of_several([*past.earlier, this], diagnosis) if past.earlier else _of_one(diagnosis, this)
    if past.lacking and answer.helps == YES:
        because = say("It is not known whether a restart helps: {lacking}.", lacking=past.lacking)
        answer = Advice(UNKNOWN, because)
    return answer._replace(attempts=tuple(each.name for each in (*past.earlier, this)))


def _of_one(diagnosis: Diagnosis, this: Attempt) -> Advice:
    """Return what the rule says."""
    finding = this.finding
    if finding is None:
        because = say("It is not known whether a restart helps: no cause is known.")
        return Advice(UNKNOWN, because, is_open=True)
    if finding.restart == NO:
        return Advice(NO, say("A restart does not help: the code or its settings fail again."))
    if finding.restart == AFTER:
        because = say("A restart helps only after something has been freed or has become ready.")
        return Advice(AFTER, because)
    if finding.restart == ELSEWHERE:
        return _elsewhere(diagnosis.run, finding, this)
    if finding.restart == YES and this.saved:
        last = this.saved[-1]
        because = say("A restart helps, from {file}: this failure was chance.", file=quoted(last))
        return Advice(YES, because, checkpoint=last)
    if finding.restart == YES:
        return Advice(YES, say("A restart helps: this failure was chance."))
    because = say("It is not known whether a restart helps: it may be chance, and this is the only attempt.")
    return Advice(UNKNOWN, because, is_open=True)


def _of_several(attempts: List[Attempt], diagnosis: Diagnosis) -> Advice:
    """Return what the attempts tell together: the last of them is this run."""
    before, this = attempts[-2:]
    finding = this.finding
    if finding is None:
        return _of_one(diagnosis, this)
    moved = _moves_with(attempts)
    if moved:
        because = say(
            "A restart helps elsewhere, without {host}: {count} attempts failed there, each on other ranks.",
            host=moved,
            count=len(attempts),
        )
        return Advice(ELSEWHERE, because, (moved,))
    if finding.restart == NO:
        return _again(attempts) if _alike(before, this) else _of_one(diagnosis, this)
    moved_on = _alike(before, this) and before.guilty_hosts != this.guilty_hosts
    if finding.restart == ELSEWHERE and not moved_on:
        return _of_one(diagnosis, this)
    if _went_on(attempts):
        if finding.restart == AFTER:
            return _of_one(diagnosis, this)
        last = this.saved[-1]
        template = "A restart helps, from {file}: this attempt went further than the one before."
        because = say(template, file=quoted(last))
        return Advice(YES, because, checkpoint=last)
    if _alike(before, this):
        return _again(attempts) if _no_further(before, this) else _further(this)
    if finding.restart == YES and len(attempts) < _MANY:
        return _of_one(diagnosis, this)
    if finding.restart in (YES, UNKNOWN):
        template = "It is not known whether a restart helps: {count} attempts failed in different ways."
        because = say(template, count=len(attempts))
        return Advice(UNKNOWN, because)
    return _of_one(diagnosis, this)


def _again(attempts: List[Attempt]) -> Advice:
    """Return that the last attempts failed alike."""
    count = 1
    for before, after in zip(attempts[-2::-1], attempts[:0:-1]):
        if not _alike(before, after):
            break
        count += 1
    where = at(attempts[-1].site)
    template = "A restart does not help: {count} attempts failed in the same way{where}."
    because = say(template, count=count, where=where)
    return Advice(NO, because)


def _further(this: Attempt) -> Advice:
    template = "It is not known whether a restart helps: it failed again after {steps} steps, nothing saved."
    return Advice(UNKNOWN, say(template, steps=this.steps))


def _alike(before: Attempt, after: Attempt) -> bool:
    """Tell whether two attempts failed of the same cause at the same place."""
    one, other = before.finding, after.finding
    return one is not None and other is not None and one.slug == other.slug and before.place == after.place


def _resumed(attempts: List[Attempt]) -> bool:
    """Tell whether the last attempt began with what an earlier one had saved."""
    loaded = set(attempts[-1].loaded)
    return any(loaded.intersection(earlier.saved) for earlier in attempts[:-1])


def _went_on(attempts: List[Attempt]) -> bool:
    """Tell whether the last attempt went on from a checkpoint, and saved the next one."""
    return _resumed(attempts) and bool(attempts[-1].saved)


def _no_further(before: Attempt, after: Attempt) -> bool:
    """Tell whether the last attempt made no step more; one that went on from a checkpoint has saved none."""
    both_new = not before.loaded and not after.loaded
    return not both_new or after.steps <= before.steps


def _moves_with(attempts: List[Attempt]) -> str:
    """Return the host on which the last attempts failed, if it had other ranks each time; else nothing."""
    before, after = attempts[-2:]
    if before.finding is None or after.finding is None or min(len(before.hosts), len(after.hosts)) < 2:
        return ""
    same_host = len(after.guilty_hosts) == 1 and before.guilty_hosts == after.guilty_hosts
    moved = not set(before.finding.ranks) & set(after.finding.ranks)
    return after.guilty_hosts[0] if same_host and moved else ""


def _elsewhere(run: Run, finding: Finding, this: Attempt) -> Advice:
    cards = _cards(run, finding, this)
    named_hosts = sorted({place.host for place in finding.without if place.host})
    hosts = tuple(named_hosts or this.guilty_hosts)
    if cards:
        names = listed([say("{card} of {host}", card=each.card, host=each.host) for each in cards])
        because = say("A restart helps elsewhere: without {cards}.", cards=names)
        return Advice(ELSEWHERE, because, hosts, cards)
    if hosts:
        because = say("A restart helps elsewhere: without {hosts}.", hosts=listed(hosts))
        return Advice(ELSEWHERE, because, hosts)
    because = say("A restart helps elsewhere; which host or card to leave out is not recorded.")
    return Advice(ELSEWHERE, because)


def _cards(run: Run, finding: Finding, this: Attempt) -> Tuple[HostCard, ...]:
    """Return the cards that the text names, or those on which the guilty ranks had their models."""
    alone = this.guilty_hosts[0] if len(this.guilty_hosts) == 1 else ""
    cards = {HostCard(place.host or alone, place.card) for place in finding.without if place.card}
    if cards and all(place.host for place in cards):
        return tuple(sorted(cards))
    if finding.slug not in _OF_CARDS:
        return ()
    uses = [use for use in card_use.uses(run) if use.process.rank in finding.ranks]
    return tuple(sorted({HostCard(use.process.host, use.device) for use in uses}))
