"""What a rule may ask of a run: functions that take it, and that look only once, however many rules ask.

The run itself keeps each answer. Answers are shared, so no caller may change one. docs/contributing/facts.md lists the functions.
"""

from functools import wraps
from typing import Callable, TypeVar

from ddp_probe.reading.model import Run

Found = TypeVar("Found")


def fact(ask: Callable[[Run], Found]) -> Callable[[Run], Found]:
    """Ask once for each run: each of a hundred thousand ranks may be in it."""

    @wraps(ask)
    def asked(run: Run) -> Found:
        if ask not in run.facts:
            run.facts[ask] = ask(run)
        answer: Found = run.facts[ask]
        return answer

    return asked
