"""Ranks have the same parameters in another order: something iterates a set of strings, whose order is each process's own."""

from typing import Iterator, List

from ddp_probe.diagnose import change
from ddp_probe.diagnose._models import Wrapped, alike, by_digest, difference, first_wraps, reordered
from ddp_probe.diagnose._who import place, through, told
from ddp_probe.diagnose.rule import HIGH, MEDIUM, WARNING, Evidence, Example, Finding, Printed, Rule, failed, line, shown
from ddp_probe.diagnose.words import named
from ddp_probe.read.model import Run

RULE = Rule(
    id="DDP703",
    slug="parameter-order-by-hash",
    cause="hash_seed_skew",
    title="Ranks have the same parameters in another order, by the random order of a set.",
    symptom="'params[i] in this process with sizes … appears not to match', another i each time; or nothing, and weights are mixed up between layers of one shape.",
    evidence="The models' lists of parameters are permutations of each other, and PYTHONHASHSEED is random or differs between ranks.",
    remedy="Build the layers in a fixed order: iterate sorted(names) or a list instead of a set; or start all ranks with PYTHONHASHSEED=0.",
    needs=("ddp.init", "process.start"),
    printed=(
        Printed(
            r"Desync detected for barrier [^\n(]*\bbegin \(\d+ ?!= ?\d+\)",
            says="The ranks hash one string to different numbers: PYTHONHASHSEED is not the same on all of them.",
            ranks=False,
        ),
    ),
)

EXAMPLES = (
    Example(
        "The counts are equal, the order is not, and the hash seeds are random.",
        """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"random"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"random"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":22,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"6b06a6a8e782eaee","first":[{"name":"depth.weight","shape":[3,16]}]}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"site":{"file":"/train/t.py","line":22,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"378709d0ff3a7be4","first":[{"name":"normal.weight","shape":[4,16]}]}}
{"event":"ddp.init","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [4, 16] appears not to match sizes of the same param in process 0."}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [4, 16] appears not to match sizes of the same param in process 0."}}
""",
    ),
    Example(
        "The hash seed is the same on all ranks.",
        """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"0"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"0"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"b2"}}
""",
        answer="clear",
    ),
    Example(
        "A rank has a layer more, whatever its hash seed.",
        """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"random"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"random"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":20,"elements":935,"trainable":20,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":22,"elements":999,"trainable":22,"digest":"b2"}}
""",
        answer="clear",
    ),
    Example(
        "A barrier that compares hashes is the first to notice.",
        "RuntimeError: Desync detected for barrier train begin (66830148464 != 133042721120)",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Take models that differ in the order of their parameters alone, on ranks whose sets have another order."""
    wraps = first_wraps(run)
    groups = by_digest(wraps)
    if len(groups) > 1:
        firsts = [group[0] for group in groups.values()]
        listed = [reordered(run, firsts[0], other) for other in firsts[1:]]
        same = all(alike(firsts[0], other) if found is None else found for found, other in zip(listed, firsts[1:]))
        if same and _seeds_differ(firsts):
            yield _found(run, wraps, firsts, HIGH if all(found is not None for found in listed) else MEDIUM)
    for match in list(told(RULE, run))[:1]:
        yield RULE.found(
            ranks=[], verdict=str(match.printed.says), evidence=[failed(match.failure)], when=match.failure.when, explains=[match.failure]
        )


def _seeds_differ(wraps: List[Wrapped]) -> bool:
    seeds = [wrapped.process.started.hash_seed for wrapped in wraps]
    return "random" in seeds or len(set(seeds)) > 1


def _found(run: Run, wraps: List[Wrapped], firsts: List[Wrapped], confidence: str) -> Finding:
    calls = [wrapped.call for wrapped in wraps]
    failures = through(run, calls)
    silent = all(wrapped.survived for wrapped in wraps)
    one, other = firsts[1], firsts[0]
    place_of = difference(run, one, other)
    who = named([wrapped.process.rank for wrapped in wraps if wrapped.process.rank is not None])
    return RULE.found(
        ranks=[],
        verdict="%s wrap the same %d parameters in %d orders, with PYTHONHASHSEED %s: %s%s."
        % (
            who[:1].upper() + who[1:],
            one.placement.parameters,
            len(firsts),
            _seeds(firsts),
            place_of or "their lists are not at hand",
            "; all shapes fit, so DDP averages gradients of different layers" if silent else "",
        ),
        evidence=[
            *(shown(wrapped.call, "digest %s" % wrapped.placement.digest) for wrapped in firsts[:3]),
            *_starts(firsts),
            *(failed(failure) for failure in failures[:2]),
        ],
        when=min(call.when for call in calls),
        severity=WARNING if silent else "",
        confidence=confidence,
        explains=failures,
        change=[
            change.Variable("PYTHONHASHSEED", "0"),
            "Better: in what builds the model before the wrap at %s, iterate sorted(names) or a list instead of a set." % place(one.call.site),
        ],
    )


def _seeds(wraps: List[Wrapped]) -> str:
    return " and ".join(sorted({wrapped.process.started.hash_seed or "unknown" for wrapped in wraps}))


def _starts(wraps: List[Wrapped]) -> List[Evidence]:
    return [
        line(call.at, "PYTHONHASHSEED %s" % call.begin.hash_seed)
        for wrapped in wraps[:2]
        for call in wrapped.process.every()
        if hasattr(call.begin, "hash_seed")
    ]
