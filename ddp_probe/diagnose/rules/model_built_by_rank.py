"""Ranks build different models: another number of parameters, other shapes, or other layers."""

from typing import Iterator, List

from ddp_probe.diagnose._models import Wrapped, alike, by_digest, difference, first_wraps, minority, reordered
from ddp_probe.diagnose._who import place, through, told
from ddp_probe.diagnose.rule import WARNING, Example, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.diagnose.words import named, spans
from ddp_probe.read.model import Run

RULE = Rule(
    id="DDP701",
    slug="model-built-by-rank",
    cause="rank_dependent_model_build",
    title="Ranks build different models.",
    symptom="'DDP expects same model across all ranks …', or 'params[i] in this process with sizes … appears not to match', with counts that a model can have.",
    evidence="The digests over name, shape, dtype and requires_grad of all parameters differ between ranks; the majority is held for right.",
    remedy="Build the model from the same values on all ranks: look for rank, for data read on this rank, and for random choices in the code that builds it.",
    needs=("ddp.init",),
    printed=(
        Printed(
            r"DDP expects same model across all ranks, but Rank (?P<one>\d+) has (?P<own>\d+) params, while rank (?P<other>\d+) has inconsistent (?P<count>[1-9]\d{0,4}) params",
            says="Rank {one} has {own} parameters and rank {other} has {count}.",
            ranks=False,
        ),
        Printed(
            r"(?:params|replicas\[\d+\])\[(?P<index>\d+)\] in this process with sizes (?P<own>\[[^\]]*\]) appears not to match sizes of the same param in process (?P<other>\d+)",
            says="Parameter {index} has sizes {own} here and others in process {other}.",
            ranks=False,
        ),
        Printed(
            r"(?:params|replicas\[\d+\])\[(?P<index>\d+)\] in this process with (?:sizes|strides) \[[^\]]*\] appears not to match strides of the same param in process (?P<other>\d+)",
            says="Parameter {index} lies in memory in another order (its strides) here than in process {other}, with the same sizes: some ranks convert the model (channels_last, a transposed weight), others do not.",
            ranks=False,
        ),
    ),
    yields_to=("parameter-order-by-hash",),
)

EXAMPLES = (
    Example(
        "Rank 2 of three has one layer more.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":2,"site":{"file":"/train/09_extra_layer_on_one_rank.py","line":24,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"trainable":4,"digest":"596174d15c5024df","first":[{"name":"backbone.0.weight","device":"cpu","shape":[16,8],"dtype":"float32"},{"name":"backbone.0.bias","device":"cpu","shape":[16],"dtype":"float32"},{"name":"head.weight","device":"cpu","shape":[1,16],"dtype":"float32"},{"name":"head.bias","device":"cpu","shape":[1],"dtype":"float32"}]}}
{"event":"ddp.init","phase":"begin","rank":1,"span":2,"site":{"file":"/train/09_extra_layer_on_one_rank.py","line":24,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":4,"elements":161,"trainable":4,"digest":"596174d15c5024df","first":[{"name":"backbone.0.weight","device":"cpu","shape":[16,8],"dtype":"float32"},{"name":"backbone.0.bias","device":"cpu","shape":[16],"dtype":"float32"},{"name":"head.weight","device":"cpu","shape":[1,16],"dtype":"float32"},{"name":"head.bias","device":"cpu","shape":[1],"dtype":"float32"}]}}
{"event":"ddp.init","phase":"begin","rank":2,"span":2,"site":{"file":"/train/09_extra_layer_on_one_rank.py","line":24,"function":"main"},"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","group":"default","placement":{"parameters":6,"elements":229,"trainable":6,"digest":"010bef7f2fbcd6aa","first":[{"name":"backbone.0.weight","device":"cpu","shape":[16,8],"dtype":"float32"},{"name":"backbone.0.bias","device":"cpu","shape":[16],"dtype":"float32"},{"name":"head.weight","device":"cpu","shape":[1,16],"dtype":"float32"},{"name":"head.bias","device":"cpu","shape":[1],"dtype":"float32"},{"name":"segmentation_head.weight","device":"cpu","shape":[4,16],"dtype":"float32"}]}}
{"event":"ddp.init","phase":"error","rank":0,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 2 has inconsistent 6 params."}}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 2 has inconsistent 6 params."},"exit_code":1,"uncaught":true}
{"event":"ddp.init","phase":"error","rank":1,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 2 has inconsistent 6 params."}}
{"event":"process.end","rank":1,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 2 has inconsistent 6 params."},"exit_code":1,"uncaught":true}
{"event":"ddp.init","phase":"error","rank":2,"span":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 2 has 6 params, while rank 0 has inconsistent 4 params."}}
{"event":"process.end","rank":2,"failure":{"type":"RuntimeError","message":"DDP expects same model across all ranks, but Rank 2 has 6 params, while rank 0 has inconsistent 4 params."},"exit_code":1,"uncaught":true}
""",
        ranks=(2,),
        job="09_extra_layer_on_one_rank",
    ),
    Example(
        "The counts are equal, and the hash seeds are random: the order may be all that differs.",
        """
{"event":"process.start","rank":0,"world_size":2,"hash_seed":"random"}
{"event":"process.start","rank":1,"world_size":2,"hash_seed":"random"}
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"b2"}}
{"event":"ddp.init","phase":"error","rank":1,"span":1,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [3, 16] appears not to match sizes of the same param in process 0."}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [3, 16] appears not to match sizes of the same param in process 0."}}
""",
        answer="clear",
    ),
    Example(
        "All ranks have one model.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"end","rank":0,"span":1}
{"event":"ddp.init","phase":"end","rank":1,"span":1}
""",
        answer="clear",
    ),
    Example(
        "The models are the same, and rank 1 alone uses channels_last.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"ddp.init","phase":"begin","rank":1,"span":1,"wrapper":"torch.nn.parallel.distributed.DistributedDataParallel","placement":{"parameters":4,"elements":161,"digest":"a1"}}
{"event":"process.end","rank":1,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"[1]: params[0] in this process with sizes [8, 3, 3, 3] appears not to match strides of the same param in process 0."}}
""",
    ),
    Example(
        "The text of the failure is all there is.",
        "RuntimeError: [2]: params[0] in this process with sizes [24, 8] appears not to match sizes of the same param in process 0.",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the digests of the wrapped models; the same parameters in another order are another rule's."""
    wraps = first_wraps(run)
    groups = by_digest(wraps)
    if len(groups) == 1:
        yield from _layouts(run)
    if len(groups) < 2 or _order_alone(run, groups):
        return
    usual, odd = list(groups.values())[:2]
    guilty = minority(groups)
    failures = through(run, [wrapped.call for wrapped in wraps])
    yield RULE.found(
        ranks=[wrapped.process.rank for wrapped in guilty if wrapped.process.rank is not None],
        verdict=_verdict(run, usual, odd),
        evidence=[shown(wrapped.call, _text(wrapped)) for wrapped in (odd[0], usual[0])] + [failed(failure) for failure in failures[:2]],
        when=min(wrapped.call.when for wrapped in wraps),
        severity=WARNING if all(wrapped.survived for wrapped in wraps) else "",
        explains=failures,
        remedy="Look at what builds the model before the wrap at %s: it depends on the rank, on data that rank %s has read, or on chance. Build it from the same values on all ranks."
        % (place(odd[0].call.site), spans([wrapped.process.rank or 0 for wrapped in odd])),
    )


def _layouts(run: Run) -> Iterator[Finding]:
    """The models are the same but for the order of their elements in memory, of which DDP tells."""
    found = [match for match in told(RULE, run) if match.printed is RULE.printed[-1]]
    if found:
        first = found[0]
        yield RULE.found(
            ranks=[],
            verdict=first.printed.says.format(**first.found.groupdict()),
            evidence=first_of([failed(match.failure) for match in found]),
            when=first.failure.when,
            explains=[match.failure for match in found],
            remedy="Convert the model on all ranks or on none before the wrap at %s: model.to(memory_format=torch.channels_last), or .contiguous() for its parameters."
            % place(first.failure.site),
        )


def _order_alone(run: Run, groups: "dict[str, List[Wrapped]]") -> bool:
    """Tell that the order of the parameters may be all that differs: by their lists, else by counts and random hash seeds."""
    usual, odd = (group[0] for group in list(groups.values())[:2])
    same = reordered(run, usual, odd)
    if same is not None:
        return same and _random(usual, odd)
    return alike(usual, odd) and _random(usual, odd)


def _random(one: Wrapped, other: Wrapped) -> bool:
    seeds = (one.process.started.hash_seed, other.process.started.hash_seed)
    return "random" in seeds or seeds[0] != seeds[1]


def _verdict(run: Run, usual: List[Wrapped], odd: List[Wrapped]) -> str:
    ranks = [[wrapped.process.rank or 0 for wrapped in group] for group in (odd, usual)]
    who, others = named(ranks[0]), named(ranks[1])
    one, other = odd[0].placement, usual[0].placement
    what = "%d parameters with %d elements where %s wrap%s %d with %d" % (
        one.parameters,
        one.elements,
        others,
        "s" if len(ranks[1]) == 1 else "",
        other.parameters,
        other.elements,
    )
    first = difference(run, odd[0], usual[0])
    return "%s wrap%s %s%s." % (who[:1].upper() + who[1:], "s" if len(ranks[0]) == 1 else "", what, "; %s" % first if first else "")


def _text(wrapped: Wrapped) -> str:
    placement = wrapped.placement
    return "%d parameters, %d elements, digest %s" % (placement.parameters, placement.elements, placement.digest)
