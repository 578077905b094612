"""Reads a ledger's ring of steps by column: ten thousand ranks may have one, so no object is made for a step."""

import sys
from array import array
from typing import Dict, List, NamedTuple, Tuple

from ddp_probe import ledger_schema as schema

KEPT = 128
"""At most this many steps are kept, the latest."""
PARTS = ("dataloader", "forward", "optimizer", "saving", "evaluating")
"""The phases of a rank's own time, in the order of the columns."""
_WORDS = schema.layout(schema.STEP).size // 8
_INDEX, _BEGAN, _ENDED, _AGAIN = (schema.offset(schema.STEP, name) // 8 for name in ("index", "began_ns", "ended_ns", "index_again"))
_COLUMNS = {name: schema.offset(schema.STEP, name + "_ns") // 8 for name in (*PARTS, "backward", "waiting")}


class StepTimes(NamedTuple):
    """The latest steps of one rank, without a gap; times are in nanoseconds. `took` is the whole step, each of `parts` a phase of it."""

    first: int = 0
    took: Tuple[int, ...] = ()
    parts: Dict[str, Tuple[int, ...]] = {}
    ended_ns: int = 0

    def __len__(self) -> int:
        return len(self.took)

    @property
    def last(self) -> int:
        """Return the number of the latest step."""
        return self.first + len(self.took) - 1


def read(area: bytes, order: str) -> StepTimes:
    """Return the steps of these bytes; a row that was being written ends them."""
    words = array("Q")
    count = len(area) // (8 * _WORDS)
    words.frombytes(area[: count * 8 * _WORDS])
    if (order == ">") != (sys.byteorder == "big"):
        words.byteswap()
    index = words[_INDEX::_WORDS]
    newest = max(index, default=0)
    places = _latest(index, words[_AGAIN::_WORDS], newest, count)
    while places and not words[places[0] * _WORDS + _BEGAN]:  # The first step began before the first backward pass, at an unknown time.
        places = places[1:]
    if not places:
        return StepTimes()
    took = tuple(max(0, words[at * _WORDS + _ENDED] - words[at * _WORDS + _BEGAN]) for at in places)
    parts = {name: tuple([words[at * _WORDS + column] for at in places]) for name, column in _COLUMNS.items()}
    return StepTimes(index[places[0]], took, parts, words[places[-1] * _WORDS + _ENDED])


def _latest(index: "array[int]", again: "array[int]", newest: int, count: int) -> List[int]:
    """Return the places of the latest whole steps, in order."""
    found: List[int] = []
    for number in range(newest, max(0, newest - min(KEPT, count - 1)), -1) if count else ():
        at = number % count
        if index[at] == number == again[at]:
            found.append(at)
        elif found:
            break
    return found[::-1]
