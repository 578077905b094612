"""The job caught a failure of init_process_group or set_device and continued: the symptoms come later, in another place."""

from typing import Iterator, List

from ddp_probe.judging import _swallowed
from ddp_probe.judging._cuda_words import said
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Printed, Rule, failed
from ddp_probe.judging.words import at, named, place
from ddp_probe.reading.model import Failed, Run

_SAYS_SO = (
    r"Not init distributed mode|(?:[Ff]ailed|FAILED|[Uu]nable|[Cc]ould not|[Cc]annot|[Ee]rror)[^\n]{0,12} (?:to |while |during )?"
    r"(?:init|initiali[sz]e|initiali[sz]ing|set(?:ting)? ?up|start)[^\n]{0,25}(?:distributed|process group|DDP"
    r"|NCCL)[^\n]{0,200}(?:[Ff]all(?:ing)? ?back|[Cc]ontinu|[Ss]ingle)"
)

RULE = Rule(
    id="DDP219",
    slug="init-failure-swallowed",
    cause="init_failure_swallowed",
    title="The job caught a failure of init_process_group or set_device, and continued without a report.",
    symptom=(
        "'Not init distributed mode.', and then DDP fails because of device_ids or of a process group that was never made; "
        "or each rank trains alone and the job ends well."
    ),
    evidence=(
        "A dist.init_process_group, device.set or mmengine.init_dist event ends in an error, later events of the same process show that it "
        "continued, no later call of the same kind succeeded, and the later failure follows from it."
    ),
    remedy=(
        "If WORLD_SIZE is more than 1, do not catch the exception: remove the try/except around init_process_group and set_device, "
        "or add a raise to it. Then fix what the exception says."
    ),
    needs=("dist.init_process_group", "device.set"),
    printed=(
        Printed(
            r"Default process group has not been initialized|device_ids and output_device arguments only work",
            beside=_SAYS_SO,
            says="The log says that distributed mode was not set up, and the job continued to a failure that follows from it.",
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find failures of the set-up that were caught and did harm."""
    found = _swallowed.swallowed(run)
    if not found:
        return
    first = found[0]
    site = first.call.site
    where = place(site)
    inside = " in %s" % site.function if site is not None and site.function else ""
    who = [one.process.rank for one in found if one.process.rank is not None]
    symptoms = [symptom for one in found for symptom in one.symptoms]
    what = {"device.set": "set_device", "mmengine.init_dist": "init_dist"}.get(first.call.name, "init_process_group")
    group = "with a process group that exists nevertheless" if first.group else "without a process group"
    yield RULE.found(
        ranks=who,
        verdict="%s failed at %s%s on %s (%s), and the job caught it and continued %s; %s."
        % (what, where, inside, named(who), said(first.failure), group, _outcome(symptoms)),
        evidence=[
            *[failed(one.failure, "caught: %s" % said(one.failure)) for one in found[:3]],
            *[failed(symptom) for symptom in symptoms[:1]],
        ],
        when=min(one.failure.when for one in found),
        remedy=(
            "If WORLD_SIZE is more than 1, do not catch the exception at %s%s: remove the try/except around it, or add a raise to it. "
            "Then fix what it says: %s."
        )
        % (where, inside, said(first.failure)),
        explains=[*[one.failure for one in found], *symptoms],
        severity=ERROR if symptoms else WARNING,
    )


def _outcome(symptoms: List[Failed]) -> str:
    if not symptoms:
        return "each of these ranks then worked alone"
    site = symptoms[0].site
    return "what fails later%s follows from it" % at(site)
