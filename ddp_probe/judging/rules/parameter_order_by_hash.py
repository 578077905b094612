"""Ranks have the same parameters in another order: the code iterates a set of strings, whose order differs by process."""

from typing import Iterator, List

from ddp_probe.judging import change
from ddp_probe.judging.rank_models import alike, by_digest, difference, first_wraps, reordered
from ddp_probe.judging.rule import HIGH, MEDIUM, WARNING, Evidence, Finding, Printed, Rule, failed, line, shown
from ddp_probe.judging.who import ranks_of, through, told
from ddp_probe.judging.wrap_calls import Wrapped
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, listed, named, place

RULE = Rule(
    id="DDP703",
    slug="parameter-order-by-hash",
    cause="hash_seed_skew",
    title="Ranks have the same parameters in a different order, because the order of a set is random.",
    symptom=(
        "'params[i] in this process with sizes … appears not to match', another i each time; or nothing, and weights are mixed up between layers of "
        "one shape."
    ),
    evidence="The models' lists of parameters are permutations of each other, and PYTHONHASHSEED is random or differs between ranks.",
    remedy="Build the layers in a fixed order: iterate sorted(names) or a list instead of a set; or start all ranks with PYTHONHASHSEED=0.",
    restart="no",  # The code iterates a set, and the ranks seldom agree on its order.
    needs=("ddp.init", "process.start"),
    printed=(
        Printed(
            r"Desync detected for barrier [^\n(]*\bbegin \(\d+ ?!= ?\d+\)",
            says="The ranks hash the same string to different numbers: PYTHONHASHSEED differs between them.",
            ranks=False,
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find models that differ only in the order of their parameters, on ranks whose sets have another order."""
    wraps = first_wraps(run)
    groups = by_digest(wraps)
    if len(groups) > 1:
        firsts = [group[0] for group in groups.values()]
        same_names = [reordered(run, firsts[0], other) for other in firsts[1:]]
        same = all(alike(firsts[0], other) if verdict is None else verdict for verdict, other in zip(same_names, firsts[1:]))
        if same and _seeds_differ(firsts):
            yield _found(run, wraps, firsts, HIGH if all(verdict is not None for verdict in same_names) else MEDIUM)
    for match in list(told(RULE, run))[:1]:
        yield RULE.found(
            ranks=[],
            verdict=say(match.printed.says),
            evidence=[failed(match.failure)],
            when=match.failure.when,
            explains=[match.failure],
        )


def _seeds_differ(wraps: List[Wrapped]) -> bool:
    seeds = [wrapped.process.started.hash_seed for wrapped in wraps]
    return "random" in seeds or len(set(seeds)) > 1


def _found(run: Run, wraps: List[Wrapped], firsts: List[Wrapped], confidence: str) -> Finding:
    calls = [wrapped.call for wrapped in wraps]
    failures = through(run, calls)
    silent = all(wrapped.survived for wrapped in wraps)
    one, other = firsts[1], firsts[0]
    different = difference(run, one, other)
    who = named(ranks_of(wrapped.process for wrapped in wraps))
    return RULE.found(
        ranks=[],
        verdict=say(
            "{who:capital} wrap the same {parameters} in {orders} orders, with PYTHONHASHSEED {seeds}: {difference}{silent}.",
            who=who,
            parameters=counted(one.placement.parameters, "parameter"),
            orders=len(firsts),
            seeds=_seeds(firsts),
            difference=different or say("their lists are not available"),
            silent=say("; all shapes fit, so DDP averages gradients of different layers") if silent else "",
        ),
        evidence=[
            *(shown(wrapped.call, say("digest {digest}", digest=wrapped.placement.digest)) for wrapped in firsts[:3]),
            *_starts(firsts),
            *(failed(failure) for failure in failures[:2]),
        ],
        when=min(call.when for call in calls),
        severity=WARNING if silent else "",
        confidence=confidence,
        explains=failures,
        change=[
            change.Variable("PYTHONHASHSEED", "0"),
            say(
                "Better: in the code that builds the model before the wrap at {where}, iterate sorted(names) or a list instead of a set.",
                where=place(one.call.site),
            ),
        ],
    )


def _seeds(wraps: List[Wrapped]) -> Text:
    seeds = {wrapped.process.started.hash_seed or say("unknown") for wrapped in wraps}
    return listed(sorted(seeds), by=" and ")


def _starts(wraps: List[Wrapped]) -> List[Evidence]:
    evidence = []
    for wrapped in wraps[:2]:
        starts = [call for call in wrapped.process.every() if hasattr(call.begin, "hash_seed")]
        evidence += [line(call.at, say("PYTHONHASHSEED {seed}", seed=call.begin.hash_seed)) for call in starts]
    return evidence
