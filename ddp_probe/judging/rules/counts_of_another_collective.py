"""DDP reads a parameter count that came from another collective, which the other rank had called."""

from collections import Counter
from typing import Dict, Iterator, List, NamedTuple

from ddp_probe.judging.rank_models import by_digest, first_wraps
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.wrap_calls import Wrapped
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import say
from ddp_probe.wording.words import place, quoted

_SAYS = Expression(r"DDP expects same model across all ranks, but Rank (\d+) has (\d+) params, while rank (\d+) has inconsistent (\d+) params")

RULE = Rule(
    id="DDP601",
    slug="counts-of-another-collective",
    cause="rank_divergent_control_flow",
    title="DDP reads a parameter count that came from another collective: one rank called a collective that the others did not call.",
    symptom=(
        "'DDP expects same model across all ranks … inconsistent N params', with an N that is not the count of any model, "
        "although the models are the same."
    ),
    evidence="The digests of all ranks' models are equal, and N is not their count.",
    remedy=(
        "Let all ranks call the same collectives in the same order before the wrap: look for one that is under 'if rank == 0', asynchronous, "
        "or in a thread."
    ),
    restart="no",  # The same rank calls the same collective again.
    needs=("ddp.init",),
    printed=(
        Printed(
            (
                r"DDP expects same model across all ranks, but Rank \d+ has (?P<own>\d{1,4}) params, while rank (?P<rank>\d+) has inconsistent "
                r"(?P<count>\d{6,}) params"
            ),
            says="Rank {rank} is reported with {count} parameters, a number that came from another collective.",
        ),
    ),
)


class _Claim(NamedTuple):
    failure: Failed
    number: int
    of: int  # The rank that is reported with this number of parameters.


def check(run: Run) -> Iterator[Finding]:
    """Compare the count that DDP read for another rank with that rank's own model."""
    wraps = first_wraps(run)
    if len(wraps) < 2 or len(by_digest(wraps)) != 1:
        return
    own: Dict[int, int] = {wrapped.process.rank: wrapped.placement.parameters for wrapped in wraps if wrapped.process.rank is not None}
    claims = [claim for claim in _claims(run) if claim.of in own and claim.number not in (0, own[claim.of], wraps[0].placement.trainable)]
    if not claims:
        return
    votes = Counter(claim.of for claim in claims)
    guilty = [rank for rank, count in votes.items() if count == max(votes.values())]
    first = claims[0]
    wrap = next(wrapped.call for wrapped in wraps if wrapped.process is first.failure.process)
    yield RULE.found(
        ranks=guilty if len(guilty) < len(own) else [],
        verdict=say(
            "DDP on rank {reader} reads that rank {rank} has {number} parameters, but it has {own}, like all the others: the "
            "number came from another collective, which rank {rank} called before the wrap at {where}.",
            reader=first.failure.rank,
            rank=first.of,
            number=first.number,
            own=own[first.of],
            where=place(wrap.site),
        ),
        evidence=[failed(first.failure), *(_shown(wrapped) for wrapped in wraps[:3])],
        when=first.failure.when,
        explains=[claim.failure for claim in claims],
        remedy=say(
            "Look for what rank {rank} calls before the wrap at {where} and the others do not: a collective under "
            "'if rank == 0', an asynchronous one without a wait, or one in a thread. Let all ranks call it, and wait for it: "
            "work.wait().",
            rank=first.of,
            where=place(wrap.site),
        ),
    )


def _shown(wrapped: Wrapped) -> Evidence:
    text = say(
        "{count} parameters, digest {digest}",
        count=wrapped.placement.parameters,
        digest=quoted(wrapped.placement.digest),
    )
    return shown(wrapped.call, text)


def _claims(run: Run) -> List[_Claim]:
    claims = []
    for failure in run.failures:
        sizes = _SAYS.search(failure.message) if failure.fatal and failure.process is not None else None
        if sizes:
            claims.append(_Claim(failure, int(sizes.group(4)[:18]), int(sizes.group(3)[:9])))
    return claims
