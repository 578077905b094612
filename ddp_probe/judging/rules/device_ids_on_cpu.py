"""device_ids are given for a model on the CPU: a CPU run, with a call written for cards."""

from typing import Iterator, List

from ddp_probe.judging import change, wrap_calls
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.judging.who import ranks
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, place, quoted

_CPU_RUN = (
    r"\bin wrap_model\b|[\"'=: ]gloo\b[\"' ,)]|CUDA available: False|(?:GPU|cuda|CUDA) (?:is )?(?:not available|unavailable)"
    r"|[Uu]sing (?:device:? ?)?[Cc][Pp][Uu]\b|Default device: cpu"
)

_NO_CARD = Expression(
    r"device_id parameter must be an accelerator with an index|device_id \S+ does not match the current compilation's accelerator support"
)

RULE = Rule(
    id="DDP106",
    slug="device-ids-on-cpu",
    cause="device_ids_given_for_cpu_run",
    title="DDP is given device_ids on a CPU run.",
    symptom="DDP raises 'device_ids and output_device arguments only work with … module parameters {device(type='cpu')}' on a host without a card.",
    evidence=(
        "The placement recorded before the wrap shows every parameter on cpu, device_ids is not None, and the host has no accelerator. The "
        "call's `through` field shows whether the job or mmengine passed device_ids. If there is an accelerator, see model-never-moved."
    ),
    remedy=(
        "Pass device_ids=None on a CPU run: DistributedDataParallel(model). With mmengine: model_wrapper_cfg=dict(type='MMDistributedDataParallel', "
        "device_ids=None), explicitly, because without it device_ids becomes [LOCAL_RANK]."
    ),
    restart="no",  # The argument stands in the code.
    needs=("ddp.init",),
    fix="device-ids",
    printed=(
        Printed(
            wrap_calls.ON_CPU,
            beside=_CPU_RUN,
            says="DDP is given device_ids for a model on cpu, in a job that says that it runs on the CPU, or in mmengine's wrap_model.",
        ),
    ),
    yields_to=("mmengine-does-not-know-card", "init-failure-swallowed"),
)


def check(run: Run) -> Iterator[Finding]:
    """Find refused device_ids on hosts without a card, and a device_id of a group that does not name a card."""
    yield from _of_group(run)
    given = [each for each in wrap_calls.wraps(run) if each.types == {"cpu"} and each.ids and not wrap_calls.card(each.process, each.call)]
    lost = wrap_calls.refused(run, given)
    if not lost:
        return
    first = lost[0]
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(lost),
        verdict=say(
            "DDP gets device_ids {ids} on {who} from {giver}, while all {count} parameters are on cpu and the host has no accelerator.",
            ids=wrap_calls.all_ids(lost),
            who=named(wrap_calls.wrapping_ranks(lost)),
            giver=wrap_calls.giver(first),
            count=first.placement.parameters,
        ),
        evidence=first_of([_shown(wrapped) for wrapped in lost]),
        when=min(each.call.when for each in lost),
        change=wrap_calls.only_on_a_card(first),
        explains=wrap_calls.failures(run, lost),
    )


def _shown(wrapped: wrap_calls.Wrapped) -> Evidence:
    text = say(
        "device_ids {ids} from {giver}; {count} parameters on cpu",
        ids=quoted(wrapped.ids),
        giver=wrap_calls.giver(wrapped),
        count=wrapped.placement.parameters,
    )
    return shown(wrapped.call, text)


def _of_group(run: Run) -> Iterator[Finding]:
    fatal = [failure for failure in run.failures if failure.process is not None and failure.fatal]
    refused = [failure for failure in fatal if _NO_CARD.search(failure.text)]
    devices: List[str] = []
    for failure in refused:
        groups = [call.begin for call in failure.calls if isinstance(call.begin, schema.InitProcessGroup)]
        devices += [group.device_id for group in groups]
    if not devices:
        return
    first = refused[0]
    yield RULE.found(
        ranks=ranks(failure.process for failure in refused),
        verdict=say(
            "init_process_group at {where} gets device_id={device} on {who}: torch takes a card of this host with its number there, or None.",
            where=place(first.site),
            device=quoted(devices[0]) if devices[0] else say("a device"),
            who=named(ranks(failure.process for failure in refused)),
        ),
        evidence=first_of([failed(failure) for failure in refused]),
        when=first.when,
        change=[
            change.Argument(first.site, change.GROUP, "device_id", ""),
            say("On a CPU run there is no card to bind the group to."),
        ],
        explains=refused,
        fix="",
    )
