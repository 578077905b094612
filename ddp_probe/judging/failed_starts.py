"""Says why the starts before one that did well died; each is judged as a separate run."""

from dataclasses import replace
from typing import Any, Callable, Iterator, Union

from ddp_probe.judging.rule import WARNING, Finding, Undecided
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import command, ordinal

_NEXT = say("{logs} shows that start as well, by its time; its cause may return.", logs=command("logs"))


def failed_starts(run: Run, judge: Callable[[Run], Any]) -> Iterator[Union[Finding, Undecided]]:
    """Yield the cause of each failed start of a run whose last start succeeded."""
    last = ordinal(len(run.earlier_generations))
    for number, attempt in enumerate(run.earlier_generations):
        diagnosis = judge(attempt)
        template = "The job succeeded at its {last} start; the {failed} start failed: {why}"
        if diagnosis.findings:
            cause = diagnosis.findings[0]
            verdict = say(template, last=last, failed=ordinal(number), why=cause.verdict)
            yield replace(cause, severity=WARNING, verdict=verdict)
        elif diagnosis.undecided:
            because = say(template, last=last, failed=ordinal(number), why=diagnosis.undecided[0].because)
            yield Undecided("failed-start", because, next=_NEXT)
