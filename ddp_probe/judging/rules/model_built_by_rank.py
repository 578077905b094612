"""Ranks build different models: they differ in the number of parameters, in shapes, or in layers."""

from typing import Iterator, List

from ddp_probe.judging.rank_models import alike, by_digest, difference, first_wraps, minority, reordered
from ddp_probe.judging.rule import WARNING, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.judging.who import ranks_of, through, told
from ddp_probe.judging.wrap_calls import Wrapped
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, named, place, quoted

RULE = Rule(
    id="DDP701",
    slug="model-built-by-rank",
    cause="rank_dependent_model_build",
    title="Ranks build different models.",
    symptom=(
        "'DDP expects same model across all ranks …', or 'params[i] in this process with sizes … appears not to match', "
        "with counts that a model can have."
    ),
    evidence="The digests over name, shape, dtype and requires_grad of all parameters differ between ranks; the majority is taken to be right.",
    remedy=(
        "Build the model from the same values on all ranks: look for rank, for data read on this rank, and for random choices in the code that "
        "builds it."
    ),
    restart="no",  # The code builds the models.
    needs=("ddp.init",),
    printed=(
        Printed(
            (
                r"DDP expects same model across all ranks, but Rank (?P<one>\d+) has (?P<own>\d+) params, while rank (?P<other>\d+) has"
                r" inconsistent (?P<count>[1-9]\d{0,4}) params"
            ),
            says="Rank {one} has {own} parameters and rank {other} has {count}.",
            ranks=False,
        ),
        Printed(
            (
                r"(?:params|replicas\[\d+\])\[(?P<index>\d+)\] in this process with sizes (?P<own>\[[^\]]*\]) appears not to match sizes of the"
                r" same param in process (?P<other>\d+)"
            ),
            says="Parameter {index} has sizes {own} here and other sizes in process {other}.",
            ranks=False,
        ),
        Printed(
            (
                r"(?:params|replicas\[\d+\])\[(?P<index>\d+)\] in this process with (?:sizes"
                r"|strides) \[[^\]]*\] appears not to match strides of the same param in process (?P<other>\d+)"
            ),
            unless=r"with sizes \[\d+, \d+, 1, 1\] appears not to match strides",
            says=(
                "Parameter {index} has another memory layout (its strides) here than in process {other}, with the same sizes: "
                "some ranks convert the model (channels_last, a transposed weight), others do not."
            ),
            ranks=False,
        ),
    ),
    yields_to=("parameter-order-by-hash",),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare the digests of the wrapped models; the same parameters in another order are another rule's cause."""
    wraps = first_wraps(run)
    groups = by_digest(wraps)
    if len(groups) == 1:
        yield from _layouts(run)
    if len(groups) < 2 or _order_alone(run, groups):
        return
    usual, odd = list(groups.values())[:2]
    guilty = minority(groups) or wraps  # Without a majority, either side can be wrong.
    failures = through(run, [wrapped.call for wrapped in wraps])
    yield RULE.found(
        ranks=ranks_of(wrapped.process for wrapped in guilty),
        verdict=_verdict(run, usual, odd),
        evidence=[shown(wrapped.call, _text(wrapped)) for wrapped in (odd[0], usual[0])] + [failed(failure) for failure in failures[:2]],
        when=min(wrapped.call.when for wrapped in wraps),
        severity=WARNING if all(wrapped.survived for wrapped in wraps) else "",
        explains=failures,
        remedy=say(
            "Look at what builds the model before the wrap at {where}: it depends on the rank, on data that {who} read, or on chance. "
            "Build it from the same values on all ranks.",
            where=place(odd[0].call.site),
            who=named([wrapped.process.rank or 0 for wrapped in odd]),
        ),
    )


def _layouts(run: Run) -> Iterator[Finding]:
    """Find models that differ only in their memory layout, as DDP reports."""
    matched = [match for match in told(RULE, run) if match.printed is RULE.printed[-1]]
    if matched:
        first = matched[0]
        groups = {name: quoted(value) for name, value in first.found.groupdict().items()}
        yield RULE.found(
            ranks=[],
            verdict=say(first.printed.says, **groups),
            evidence=first_of([failed(match.failure) for match in matched]),
            when=first.failure.when,
            explains=[match.failure for match in matched],
            remedy=say(
                "Convert the model on all ranks or on none before the wrap at {where}: model.to(memory_format=torch.channels_last), "
                "or .contiguous() for its parameters.",
                where=place(first.failure.site),
            ),
        )


def _order_alone(run: Run, groups: "dict[str, List[Wrapped]]") -> bool:
    """Tell that the order of the parameters may be all that differs: by their lists, else by counts and random hash seeds."""
    usual, odd = (group[0] for group in list(groups.values())[:2])
    same = reordered(run, usual, odd)
    if same is not None:
        return same and _random(usual, odd)
    return alike(usual, odd) and _random(usual, odd)


def _random(wrapped: Wrapped, other: Wrapped) -> bool:
    seeds = (wrapped.process.started.hash_seed, other.process.started.hash_seed)
    return "random" in seeds or seeds[0] != seeds[1]


def _verdict(run: Run, usual: List[Wrapped], odd: List[Wrapped]) -> Text:
    one, other = odd[0].placement, usual[0].placement
    first = difference(run, odd[0], usual[0])
    return say(
        "{who:capital} {who:wraps|wrap} {parameters} with {elements}, "
        "and {others} {others:wraps|wrap} {their_parameters} with {their_elements}{difference}.",
        who=named([wrapped.process.rank or 0 for wrapped in odd]),
        parameters=counted(one.parameters, "parameter"),
        elements=counted(one.elements, "element"),
        others=named([wrapped.process.rank or 0 for wrapped in usual]),
        their_parameters=other.parameters,
        their_elements=other.elements,
        difference=say("; {difference}", difference=first) if first else "",
    )


def _text(wrapped: Wrapped) -> Text:
    placement = wrapped.placement
    return say(
        "{parameters}, {elements}, digest {digest}",
        parameters=counted(placement.parameters, "parameter"),
        elements=counted(placement.elements, "element"),
        digest=placement.digest,
    )
