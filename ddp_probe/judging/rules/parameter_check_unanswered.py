"""The communication of DDP's model comparison failed, and DDP reports that the models differ."""

import re
from typing import Iterator, List

from ddp_probe.judging.printed import by_text, matches
from ddp_probe.judging.rule import Finding, Printed, Rule, Undecided, failed, first_of, shown
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say

_ZERO = r"inconsistent 0 params\b"
_TIMED_OUT = (
    r"Watchdog caught collective operation timeout|NCCL operations have failed or timed out|ran for \d+ milliseconds before timing out"
    r"|Timeout\(ms\)=\d+\) ran for"
)

RULE = Rule(
    id="DDP417",
    slug="parameter-check-unanswered",
    cause="comm_failure_reported_as_param_mismatch",
    title="DDP reports different models, but in fact the exchange of the parameter counts failed.",
    symptom=(
        "'DDP expects same model across all ranks, but Rank 1 has N params, while rank 0 has inconsistent 0 params', often half an hour after the "
        "start; or another mismatch beside a watchdog timeout."
    ),
    evidence=(
        "A count of 0 is what memory holds that no other rank has written to; the digest of the model, recorded by each rank before the wrap, "
        "is the same on all of them."
    ),
    remedy=(
        "Look for why the ranks could not communicate, not at the model: cards shared by two ranks, the network interface (NCCL_SOCKET_IFNAME, "
        "NCCL_IB_DISABLE=1), P2P (NCCL_P2P_DISABLE=1), a rank that was late or gone. NCCL_DEBUG=INFO shows the path that NCCL uses."
    ),
    restart="unknown",  # Why the ranks could not communicate decides.
    needs=("ddp.init",),
    printed=(
        Printed(
            _ZERO, ranks=False, says="A rank's parameter count did not arrive: 0 is not a count. The communication failed; the models may be equal."
        ),
        Printed(
            r"appears not to match (?:sizes|strides) of the same param in process",
            beside=_TIMED_OUT,
            ranks=False,
            says="The comparison of the models timed out; the mismatch that it reports may not exist.",
        ),
        Printed(r"appears not to match (?:sizes|strides) of the same param in process", beside=_ZERO, ranks=False),
        Printed(
            _TIMED_OUT,
            beside=r"in _verify_(?:param_shape|params)_across_processes\b|_verify_(?:params_across_processes|model_across_ranks)\(",
            ranks=False,
            says="The comparison of the models, the first exchange between DDP's ranks, timed out.",
        ),
    ),
)


def check(run: Run) -> "Iterator[Finding | Undecided]":
    """Compare the digests that the ranks wrote before the wrap that failed."""
    of_ranks = [match.failure for match in matches(RULE, run) if match.failure.process is not None]
    failures = [failure for failure in of_ranks if re.search(_ZERO, failure.text)]
    if not failures:
        yield from by_text(RULE, run)
        return
    firsts = [(process.rank, process.first(schema.Wrap)) for process in run.processes if process.rank is not None]
    wraps = [(rank, call) for rank, call in firsts if call is not None]
    digests = {call.begin.placement.digest for _, call in wraps if call.begin.placement and call.begin.placement.digest}
    if len(digests) > 1:
        return  # They do differ: that is another rule's.
    if not digests:
        yield from by_text(RULE, run)
        return
    expected = run.expected or len(wraps)
    evidence = [failed(failure) for failure in failures[:2]]
    for rank, call in wraps:
        digest = call.begin.placement.digest if call.begin.placement else say("unknown")
        evidence.append(shown(call, say("rank {rank}: digest {digest}", rank=rank, digest=digest)))
    yield RULE.found(
        ranks=[],
        verdict=say(
            "All {count} ranks that reached the wrap{expected} hold the same model (digest {digest}, {parameters} parameters): "
            "the count of 0 is an answer that never arrived.",
            count=len(wraps),
            expected=say(", of {expected}", expected=expected) if len(wraps) != expected else "",
            digest=digests.pop(),
            parameters=_parameters([call for _, call in wraps]),
        ),
        evidence=first_of(evidence),
        when=failures[0].when,
        explains=failures,
    )


def _parameters(calls: "List[LoggedCall[schema.Wrap]]") -> int:
    return next((call.begin.placement.parameters for call in calls if call.begin.placement), 0)
