"""Parameters of the model got no gradient, and DDP waits for all of them."""

import os
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging import change
from ddp_probe.judging.printed import Match
from ddp_probe.judging.rank_models import first_wraps, parameters
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks, told
from ddp_probe.reading.job_line import own_frames
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.shared.own_code import package
from ddp_probe.shared.schema import Site
from ddp_probe.standing.used_parts import UsedUnder, used_under
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import capital, counted, listed, named, place, quoted

_SKIPPED = r"(?:recover from OOM|out of memory)[^\n]*(?:\n[^\n]*){0,4}?[Ss]kipping|recover from OOM"

RULE = Rule(
    id="DDP613",
    slug="unused-parameters",
    cause="unused_parameters",
    title="Some parameters of the model took no part in the loss, but DDP waits for their gradients.",
    symptom="In the second step DDP raises 'Expected to have finished reduction in the prior iteration before starting a new one'.",
    evidence="The exception, and the indices of parameters in it.",
    remedy="Let every parameter take part in the loss, or freeze it before the wrap (parameter.requires_grad_(False)), or give DDP "
    "find_unused_parameters=True (Lightning: strategy='ddp_find_unused_parameters_true'; Accelerate: "
    "DistributedDataParallelKwargs(find_unused_parameters=True); transformers: TrainingArguments(ddp_find_unused_parameters=True); "
    "mmengine: find_unused_parameters=True in the config or in model_wrapper_cfg). If the ranks leave out different parameters, they take "
    "different branches in forward.",
    restart="no",  # The same parameters are left out again.
    needs=("process.end",),
    printed=(
        Printed(
            r"Parameter indices which did not receive grad for rank (?P<rank>\d+): (?P<indices>\d[\d ]*)",
            says="Parameters {indices} of the model got no gradient.",
        ),
        Printed(
            r"Parameters which did not receive grad for rank (?P<rank>\d+): (?P<indices>[A-Za-z_][^\n]{0,120})",
            says="The parameters {indices} got no gradient.",
        ),
        Printed(
            r"Expected to have finished reduction in the prior iteration before starting a new one",
            beside=_SKIPPED,
            says="DDP's exchange was not finished: a batch was skipped after an out-of-memory, or parameters took no part in the loss.",
            next="A rank must not skip a batch alone: let all ranks skip it together (all_reduce a flag before backward), or make batches smaller.",
        ),
        Printed(
            r"Expected to have finished reduction in the prior iteration before starting a new one",
            nowhere=_SKIPPED,
            says="Parameters of the model took no part in the loss.",
        ),
        Printed(r"LightningModule has parameters that were not used in producing the loss", says="Parameters of the model took no part in the loss."),
    ),
)


class _Unused(NamedTuple):
    """What one rank left out of its loss."""

    failure: Failed
    indices: List[int]
    names: List[str]  # Of the parameters; empty if the model's list is not available.

    @property
    def key(self) -> Tuple[int, ...]:
        return tuple(self.indices)


def check(run: Run) -> Iterator[Finding]:
    """Find the exceptions, and name the parameters if the model's list is available."""
    matched = list(told(RULE, run))
    if not matched:
        return
    left = [_left(run, match.failure) for match in matched]
    first = left[0]
    groups: Dict[Tuple[int, ...], List[_Unused]] = {}
    for unused in left:
        groups.setdefault(unused.key, []).append(unused)
    by_rank = len(groups) > 1 and all(groups)
    wrap = first.failure.process.first(schema.Wrap) if first.failure.process is not None else None
    where = place(first.failure.site)
    verdict = _differ(list(groups.values()), where) if by_rank else _alike(first, where)
    under = _used_under(wrap, first)
    if under is not None:
        code, line = quoted("'%s'" % under.condition.text), place(under.site)
        template = "The model uses {part} only under {code} at {where}."
        verdict = joined([verdict, say(template, part=quoted(under.part), code=code, where=line)])
    yield RULE.found(
        ranks=ranks(match.failure.process for match in matched),
        verdict=verdict,
        evidence=[*_branch(under, first), *_failures(matched), *_wrap(wrap)],
        when=first.failure.when,
        explains=[match.failure for match in matched],
        change=_change(wrap, first, by_rank),
    )


def _wrap(wrap: "Optional[LoggedCall[schema.Wrap]]") -> List[Evidence]:
    return [shown(wrap, say("the wrap"))] if wrap is not None else []


def _failures(matched: Sequence[Match]) -> List[Evidence]:
    return [failed(match.failure) for match in matched[:3]]


def _used_under(wrap: "Optional[LoggedCall[schema.Wrap]]", first: _Unused) -> Optional[UsedUnder]:
    """Return the `if` under which the model uses the one part that all these parameters are in."""
    parts = {name.partition(".")[0] for name in first.names if "." in name}
    if wrap is None or wrap.site is None or len(parts) != 1 or not all("." in name for name in first.names):
        return None
    module, _, model = wrap.begin.model.rpartition(".")
    files = [wrap.site.file, *(frame.file for frame in own_frames(first.failure.frames))]
    files.append(os.path.join(os.path.dirname(wrap.site.file), *module.split(".")) + ".py")
    return used_under(files, model, parts.pop(), first.failure.when)


def _branch(under: Optional[UsedUnder], first: _Unused) -> List[Evidence]:
    if under is None:
        return []
    line = first.failure.at
    return [Evidence(line.file, line.line, under.site, quoted(under.condition.text))]


def _alike(first: _Unused, where: Text) -> Text:
    """Say which parameters all ranks leave out; a name keeps its first letter as it is."""
    return say(
        "{parameters} took no part in the loss, and DDP, stepping at {where}, waits for the gradients of all.",
        parameters=_what(first) if first.names else capital(_what(first)),
        where=where,
    )


def _differ(groups: List[List[_Unused]], where: Text) -> Text:
    """Say which parameters each rank leaves out: the ranks take different branches, and no parameter is unused everywhere."""
    parts = []
    for group in groups[:3]:
        who = named([unused.failure.rank for unused in group if unused.failure.rank is not None])
        parts.append(say("{parameters} on {who}", parameters=_what(group[0]), who=who))
    more = len(groups) - 3
    return say(
        "The ranks use different parameters: {parts}{others} took no part in the loss there, and DDP, stepping at "
        "{where}, waits for the gradients of all.",
        parts=listed(parts, by="; "),
        others=say(" and others on {ranks}", ranks=counted(more, "more rank")) if more > 0 else "",
        where=where,
    )


def _what(left: _Unused) -> Text:
    if left.names:
        return listed(left.names, 5)
    if not left.indices:
        return say("some parameters")
    return say("{numbers:parameter|parameters} number {numbers}", numbers=listed(left.indices, 10))


def _left(run: Run, failure: Failed) -> _Unused:
    indices = _indices(failure)
    return _Unused(failure, indices, _names(run, failure, indices))


def _indices(failure: Failed) -> List[int]:
    match = re.search(r"did not receive grad for rank \d+: ((?:\d{1,7} ?)+)", failure.message)
    return [int(index) for index in match.group(1).split()] if match else []


def _names(run: Run, failure: Failed, indices: List[int]) -> List[str]:
    """Return the names of the parameters; DDP numbers those that need a gradient, in the model's order."""
    wrapped = next((wrapped for wrapped in first_wraps(run) if wrapped.process is failure.process), None)
    listed_parameters = parameters(run, wrapped) if wrapped is not None else None
    trained = [name for name, _, _, trainable in listed_parameters or () if trainable]
    return [trained[index] for index in indices] if indices and max(indices) < len(trained) else []


def _change(wrap: "Optional[LoggedCall[schema.Wrap]]", first: _Unused, by_rank: bool) -> change.Change:
    """Let DDP look for such parameters, by the switch of the library that made the wrap; other changes are for a person to choose."""
    site = wrap.site if wrap is not None else None
    otherwise = say(
        "Or use {parameters} in the loss, or freeze what you do not train before the wrap at {where} (parameter.requires_grad_(False)).",
        parameters=_what(first) if first.names else say("them"),
        where=place(site),
    )
    if by_rank:
        otherwise = say(
            "Or, if that is not intended, let all ranks take the same branches in forward: look there for what depends on the rank or on its data."
        )
    packages = {package(frame.file) for frame in wrap.begin.through} if wrap is not None else set()
    anywhere = Site(site.file) if site is not None else None
    if packages.intersection(("lightning", "pytorch_lightning")):
        return [change.Argument(anywhere, change.TRAINER, "strategy", "'ddp_find_unused_parameters_true'"), otherwise]
    if "transformers" in packages:  # It passes the model to Accelerate.
        return [say("Give TrainingArguments ddp_find_unused_parameters=True."), otherwise]
    if "accelerate" in packages:
        value = "[accelerate.DistributedDataParallelKwargs(find_unused_parameters=True)]"
        return [change.Argument(anywhere, change.ACCELERATOR, "kwargs_handlers", value, imports=("accelerate",)), otherwise]
    if "mmengine" in packages:
        in_config = say("In the config write find_unused_parameters = True, or find_unused_parameters=True in model_wrapper_cfg if there is one.")
        return [in_config, otherwise]
    return [change.Argument(site, change.WRAP, "find_unused_parameters", "True"), otherwise]
