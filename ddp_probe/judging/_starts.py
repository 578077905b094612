"""A job that did well only at a later start: why the failed starts before it died; each is judged as a separate run."""

from typing import Any, Callable, Iterator, Union

import msgspec

from ddp_probe.judging.rule import WARNING, Finding, Undecided
from ddp_probe.judging.words import ordinal
from ddp_probe.reading.model import Run

_NEXT = "python -m ddp_probe logs shows that start as well, by its time; its cause may come back."


def failed_starts(run: Run, judge: Callable[[Run], Any]) -> Iterator[Union[Finding, Undecided]]:
    """Yield the cause of each failed start of a run whose last one did well."""
    last = ordinal(len(run.earlier_generations))
    for number, attempt in enumerate(run.earlier_generations):
        told = judge(attempt)
        lead = "The job did well at its %s start; the %s one failed" % (last, ordinal(number))
        if told.findings:
            cause = told.findings[0]
            yield msgspec.structs.replace(cause, severity=WARNING, verdict="%s: %s" % (lead, cause.verdict))
        elif told.undecided:
            yield Undecided("failed-start", "%s: %s" % (lead, told.undecided[0].because), next=_NEXT)
