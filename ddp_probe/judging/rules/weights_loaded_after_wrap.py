"""Some ranks load a checkpoint after DDP has made all replicas equal, and the others do not."""

from typing import Iterator, List

from ddp_probe.judging.rank_models import first_wraps
from ddp_probe.judging.rule import MEDIUM, WARNING, Finding, Rule, shown
from ddp_probe.judging.wrap_calls import Wrapped
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import named, place, quoted

_SOON = 120.0  # Seconds after the wrap; a later load is rather an evaluation of the best checkpoint.

RULE = Rule(
    id="DDP707",
    slug="weights-loaded-after-wrap",
    cause="silent_replica_divergence",
    title="Some ranks load a checkpoint after the wrap, but the others do not.",
    symptom="Nothing fails; the loss differs between ranks from the first step, and the ranks' weights are never equal again.",
    evidence="A load on some ranks only, after DDP's wrap has made all replicas equal.",
    remedy="Load before the wrap, in which DDP sends the weights of rank 0 to all; or load the same file on all ranks.",
    restart="no",  # The same ranks load after the wrap again.
    needs=("ddp.init", "checkpoint.load"),
    severity=WARNING,
)


def check(run: Run) -> Iterator[Finding]:
    """Find runs that ended well, in which some ranks and not all loaded soon after the wrap."""
    wraps = first_wraps(run)
    if len(wraps) < 2 or len(wraps) < (run.expected or 0) or not all(_ended_well(wrapped) for wrapped in wraps):
        return
    loads = [(wrapped, _loads(wrapped)) for wrapped in wraps]
    loaded = [(wrapped, calls) for wrapped, calls in loads if calls]
    if not loaded or len(loaded) == len(wraps):
        return
    guilty = [wrapped.process.rank for wrapped, _ in loaded if wrapped.process.rank is not None]
    others = named([wrapped.process.rank for wrapped, calls in loads if not calls and wrapped.process.rank is not None])
    wrapped, calls = loaded[0]
    yield RULE.found(
        ranks=guilty,
        verdict=_verdict(guilty, others, wrapped, calls[0]),
        evidence=[
            shown(calls[0], say("load of {path}", path=quoted(_path(calls[0])))),
            shown(wrapped.call, say("the wrap, before it")),
        ],
        when=calls[0].when,
        confidence=MEDIUM,
        remedy=say(
            "Move the load at {load} before the wrap at {wrap}, in which DDP sends the weights of rank 0 to all, or let all ranks load the file.",
            load=place(calls[0].site),
            wrap=place(wrapped.call.site),
        ),
    )


def _ended_well(wrapped: Wrapped) -> bool:
    end = wrapped.process.ended
    if end is None:
        return wrapped.survived and wrapped.process.exit_code == 0
    return wrapped.survived and end.failure is None and not end.uncaught


def _loads(wrapped: Wrapped) -> "List[LoggedCall[schema.Load]]":
    wrap = wrapped.call.until or wrapped.call.when
    left = next((call.when for call in wrapped.process.calls(schema.DestroyProcessGroup) if not call.begin.group and call.when >= wrap), wrap + _SOON)
    until = min(left, wrap + _SOON)  # Without a group the ranks do not train together: a later load goes into another model.
    succeeded = [call for call in wrapped.process.calls(schema.Load) if call.end is not None and call.failure is None]
    return [call for call in succeeded if wrap <= call.when <= until and _from_a_file(call)]


def _from_a_file(call: "LoggedCall[schema.Load]") -> bool:
    """Tell whether a file was read: what is in memory came from another rank, a queue or a pickle, and is rarely a checkpoint."""
    return _path(call)[:1] not in ("", "<")


def _path(call: "LoggedCall[schema.Load]") -> str:
    return call.begin.file.path if call.begin.file is not None else ""


def _verdict(guilty: List[int], others: Text, wrapped: Wrapped, call: "LoggedCall[schema.Load]") -> Text:
    return say(
        "{path} is loaded at {load}, {late:.0f} ms after the wrap at {wrap} made all replicas equal, by {who} "
        "and not by {others}: weights that go from there into the wrapped model are on some ranks only.",
        path=quoted(_path(call)),
        load=place(call.site),
        late=(call.when - (wrapped.call.until or call.when)) * 1000,
        wrap=place(wrapped.call.site),
        who=named(guilty),
        others=others,
    )
