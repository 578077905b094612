"""What several rules ask of a run is looked at once: each of a hundred thousand ranks may be in it."""

from functools import wraps
from typing import Callable, List, TypeVar
from weakref import WeakKeyDictionary

from ddp_probe.read.model import Run

R = TypeVar("R")


def once_per_run(ask: Callable[[Run], List[R]]) -> Callable[[Run], List[R]]:
    """Remember the answer for as long as the run is in use. It is shared: whoever asks does not change it."""
    known: WeakKeyDictionary[Run, List[R]] = WeakKeyDictionary()

    @wraps(ask)
    def asked(run: Run) -> List[R]:
        if run not in known:
            known[run] = ask(run)
        return known[run]

    return asked
