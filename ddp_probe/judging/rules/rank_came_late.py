"""A rank came to a collective after the others had given up waiting for it there."""

from typing import Iterator, List

from ddp_probe.judging._late import Before, Late, before, late
from ddp_probe.judging._split_words import explained, only_waits
from ddp_probe.judging.ledgers import Standing, called, spoken_name
from ddp_probe.judging.rule import Evidence, Finding, Rule
from ddp_probe.judging.words import at, clock, listed, named
from ddp_probe.reading.model import Run

RULE = Rule(
    id="DDP651",
    slug="rank-came-late",
    cause="rank0_long_work_timeout",
    title="A rank came to a collective after the others had given up waiting for it there.",
    symptom="Some ranks end with a timeout, and the rank that they waited for fails a little later in the same call, because its peers are gone.",
    evidence="The ledgers: all ranks made the same call, and one began it after others had given up there; its stacks say what it did until then.",
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
    fix="timeout",
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that came late, when, and what they did until then."""
    found = late(run)
    if found is None or not only_waits(run):
        return
    first, last = found.here[0], found.there[0]
    done, ranks = before(last), [one.rank for one in found.there]
    yield RULE.found(
        ranks=ranks,
        verdict="%s waited %s for %.1f s and gave up at %s; %s came there at %s, %.1f s too late.%s"
        % (
            named([one.rank for one in found.here]).capitalize(),
            first.where(),
            found.waited,
            clock(found.gave_up),
            named(ranks),
            clock(found.came),
            found.came - found.gave_up,
            _until_then(done, last, found),
        ),
        evidence=[_stop(first, "gave up"), _stop(last, "came late, and was"), *_seen(done, last)],
        when=found.gave_up,
        remedy="Share the work of %s among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2))."
        % named(ranks),
        explains=explained(run),
    )


def _until_then(done: Before, standing: Standing, found: Late) -> str:
    """Say what a rank did before it came."""
    did: List[str] = [spoken_name(name) for name in done.phases]
    if done.site is not None:
        within = " in %s" % done.site.function if done.site.function and not done.site.function.startswith("<") else ""
        did.append("its own code%s%s" % (at(done.site), within))
    who = named([standing.rank])
    seconds = found.came - done.since
    if not did:
        return " Until then %s made no call of torch.distributed for %.1f s." % (who, seconds)
    return " Until then %s was in %s; it had made no call of torch.distributed for %.1f s." % (who, listed(did, 3), seconds)


def _stop(standing: Standing, how: str) -> Evidence:
    record = standing.inside
    text = "%s %s %s" % (named([standing.rank]), how, called(record) if record is not None else standing.where())
    return Evidence(standing.ledger.path, record.number if record is not None else 1, standing.site, text)


def _seen(done: Before, standing: Standing) -> List[Evidence]:
    if done.site is None or done.at is None:
        return []
    return [Evidence(done.at.file, done.at.line, done.site, "%s was here at %s" % (named([standing.rank]), clock(done.when)))]
