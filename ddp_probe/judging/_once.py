"""What several rules ask of a run is looked at once: each of a hundred thousand ranks may be in it."""

from functools import wraps
from typing import Any, Callable, List, TypeVar
from weakref import WeakKeyDictionary

from ddp_probe.reading.model import Run

R = TypeVar("R")
_ALL: "List[WeakKeyDictionary[Run, Any]]" = []


def once_per_run(ask: Callable[[Run], List[R]]) -> Callable[[Run], List[R]]:
    """Remember the answer until it is forgotten. It is shared: whoever asks does not change it."""
    known: WeakKeyDictionary[Run, List[R]] = WeakKeyDictionary()
    _ALL.append(known)

    @wraps(ask)
    def asked(run: Run) -> List[R]:
        if run not in known:
            known[run] = ask(run)
        return known[run]

    return asked


def forget(run: Run) -> None:
    """Free what was remembered of a run once all rules have answered."""
    for known in _ALL:
        known.pop(run, None)
