"""The arithmetic of the table: samples taken in turn, a result a row, and whether its goal is met."""

import statistics
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

GROSS = 2.0
"""The short form fails where a result is over its goal by this factor."""


class Sample(NamedTuple):
    """One measurement, in the row's unit."""

    wall: float
    cpu: float


class Question(NamedTuple):
    """One row: what is asked, which of two numbers answers it, and what would be good enough."""

    key: str
    what: str
    kind: str  # ratio: on / off. difference: on - off. cost: on alone.
    unit: str  # of the samples; a ratio has none
    goal: Optional[float]
    how: str
    limit: str = ""  # what bounds it; printed where the goal is not met
    clock: str = "wall"


def interleave(variants: Dict[str, Callable[[], Sample]], rounds: int, warm: int = 1) -> Dict[str, List[Sample]]:
    """Take a sample of each variant in turn, each round in another order; the first rounds warm the caches and are dropped."""
    names = list(variants)
    found: Dict[str, List[Sample]] = {name: [] for name in names}
    for number in range(rounds + warm):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            sample = variants[name]()
            if number >= warm:
                found[name].append(sample)
    return found


def spread(values: Sequence[float]) -> Dict[str, float]:
    """Return minimum, quartiles and median."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return {"minimum": ordered[0], "low": ordered[quarter], "median": statistics.median(ordered), "high": ordered[len(ordered) - 1 - quarter]}


def result(kind: str, off: Sequence[float], on: Sequence[float]) -> float:
    """Return the row's number from the minima: another program on the machine adds time and never takes any away."""
    if kind == "cost":
        return min(on)
    return min(on) / min(off) if kind == "ratio" else min(on) - min(off)


def paired(kind: str, off: Sequence[float], on: Sequence[float]) -> Dict[str, float]:
    """Return how the row's number varies from round to round."""
    if kind == "cost":
        return spread(on)
    return spread([b / a if kind == "ratio" else b - a for a, b in zip(off, on)])


def answer(question: Question, off: Sequence[Sample], on: Sequence[Sample]) -> Dict[str, Any]:
    """Return a row of the table."""
    row: Dict[str, Any] = {**question._asdict(), "rounds": len(on), "note": ""}
    for clock in ("wall", "cpu"):
        a, b = [getattr(sample, clock) for sample in off], [getattr(sample, clock) for sample in on]
        row[clock] = {"result": result(question.kind, a, b), "paired": paired(question.kind, a, b), "off": spread(a) if a else None, "on": spread(b)}
    row["result"] = row[question.clock]["result"]
    return judged(row)


def unanswered(question: Question, note: str) -> Dict[str, Any]:
    """Return a row that says why it has no number."""
    return judged({**question._asdict(), "rounds": 0, "note": note, "wall": None, "cpu": None, "result": None})


def judged(row: Dict[str, Any]) -> Dict[str, Any]:
    """Add whether the goal is met; None if there is no goal or no number."""
    goal, value = row["goal"], row["result"]
    known = goal is not None and value is not None
    row["met"] = value <= goal if known else None
    row["gross"] = value > goal * GROSS if known else False
    return row
