"""The default process group is made twice, mostly by the program after a library has made it."""

from itertools import chain
from typing import Iterator

from ddp_probe.judging import change
from ddp_probe.judging.printed import by_text, matches
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import place

RULE = Rule(
    id="DDP405",
    slug="init-process-group-twice",
    cause="init_process_group_twice",
    title="init_process_group is called although the default process group already exists.",
    symptom="'trying to initialize the default process group twice!'.",
    evidence="The failing call sees an existing group; the call that created the group is earlier in the log.",
    remedy=(
        "Call it once: if not torch.distributed.is_initialized(): torch.distributed.init_process_group(...); or leave it to the library that "
        "creates the group."
    ),
    restart="no",  # The second call stands in the code.
    needs=("dist.init_process_group",),
    printed=(Printed(r"trying to initialize the default process group twice"),),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the call that failed, and the one that made the group."""
    failures = [match.failure for match in matches(RULE, run)]
    passed = chain.from_iterable(failure.calls for failure in failures)
    calls = [call for call in passed if isinstance(call.begin, schema.InitProcessGroup)]
    process = failures[0].process if failures else None
    if process is None or not calls:
        yield from by_text(RULE, run)
        return
    second = calls[0]
    earlier = [call for call in process.calls(schema.InitProcessGroup) if call.failure is None and call.at.line < second.at.line]
    first = earlier[-1] if earlier else None
    evidence = [_made(first)] if first is not None else []
    yield RULE.found(
        ranks=ranks_of(failures),
        verdict=say(
            "init_process_group is called at {where} although {first} has made the default group.",
            where=place(second.site),
            first=place(first.site) if first is not None else say("another call"),
        ),
        evidence=evidence + [failed(failure) for failure in failures[:4]],
        when=failures[0].when,
        change=[
            change.Instead(second.site, change.GROUP, "not torch.distributed.is_initialized()", (), ("torch.distributed",), "init_process_group"),
            say("Or remove one of the two calls."),
        ],
        explains=failures,
    )


def _made(call: "LoggedCall[schema.InitProcessGroup]") -> Evidence:
    return shown(call, say("the default group is made here"))
