"""The steps of one rank, by its ledger's ring of steps or by its calls: in columns, because ten thousand ranks may have some."""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Any, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import RECORD, STEP, LedgerBytes

FEW = 20
"""Fewer steps than this say nothing."""
KEPT = 64
"""The number of the latest steps of a rank that are kept in memory."""
PARTS = ("dataloader", "forward", "backward", "optimizer", "saving", "evaluating", "waiting")
"""The parts of a step, in the order of the columns; what is left of it is spent elsewhere."""
_WORDS = STEP.size // 8
_INDEX, _BEGAN, _ENDED, _AGAIN = map(STEP.word, ("index", "began_ns", "ended_ns", "index_again"))
_COLUMNS = {name: STEP.word(name + "_ns") for name in PARTS}
_LONGEST = (1 << 32) - 1
_FIELDS = ("entered_ns", "waited_ns", "left", "seq", "outer", "group", "site", "op", "flags")
_ENTERED, _WAITED, _LEFT, _SEQ, _OUTER, _GROUP, _SITE, _OP, _FLAGS = map(RECORD.position, _FIELDS)
_LATEST = 1024  # Among this many of the latest records the steps are looked for.


class StepTimes(NamedTuple):
    """StepTimes of one rank, the latest last; times are in microseconds. `took` are the whole steps, each of `parts` the time in one of PARTS.

    A step ends with a backward pass; in a job without one, with a collective that it calls again and again.
    """

    numbers: Sequence[int] = ()
    took: Sequence[int] = ()
    parts: Mapping[str, Sequence[int]] = {}
    ended_ns: int = 0  # When the latest ended, on the host's monotonic clock.

    def cut(self, first: int, last: int) -> "StepTimes":
        """Return the steps from one number to another."""
        begin, end = bisect_left(self.numbers, first), bisect_right(self.numbers, last)
        if end - begin == len(self.numbers):
            return self
        ended = self.ended_ns - 1000 * sum(self.took[end:])
        return StepTimes(self.numbers[begin:end], self.took[begin:end], {name: times[begin:end] for name, times in self.parts.items()}, ended)

    def latest(self, count: int) -> "StepTimes":
        """Return at most this many of the latest steps."""
        return self if len(self.numbers) <= count else self.cut(self.numbers[-count], self.numbers[-1])

    def added(self, names: Sequence[str]) -> List[int]:
        """Return the sum of some parts, step by step."""
        return [sum(times) for times in zip(*[self.parts[name] for name in names])]

    def elsewhere(self) -> List[int]:
        """Return what is left of each step."""
        return [max(0, took - in_parts) for took, in_parts in zip(self.took, self.added(PARTS))]


def read(file: LedgerBytes, most: int = schema.STEPS) -> StepTimes:
    """Return the latest whole steps of a ledger, without a gap; a row that was being written ends them."""
    if file.head["step_size"] != STEP.size:
        return StepTimes()
    words, area = array("Q"), file.data[file.at.steps : file.at.passes]
    count = len(area) // STEP.size
    words.frombytes(area[: count * STEP.size])
    if (file.order == ">") != (sys.byteorder == "big"):
        words.byteswap()
    index = words[_INDEX::_WORDS]
    places = _latest(index, words[_AGAIN::_WORDS], max(index, default=0), min(most, count - 1))
    while places and not words[places[0] * _WORDS + _BEGAN]:  # The first step began before the first backward pass, at an unknown time.
        places = places[1:]
    if not places:
        return StepTimes()
    begin, end = places[0] * _WORDS, (places[-1] + 1) * _WORDS
    rows = words[begin:end] if begin < end else words[begin:] + words[:end]
    took = _micros([max(0, ended - began) for began, ended in zip(rows[_BEGAN::_WORDS], rows[_ENDED::_WORDS])])
    parts = {name: _micros(rows[column::_WORDS]) for name, column in _COLUMNS.items()}
    return StepTimes(counted(list(rows[_INDEX::_WORDS])), took, parts, rows[_ENDED - _WORDS])


def counted(numbers: List[int]) -> Sequence[int]:
    """Return numbers as a range if they follow one another: ten thousand ranks have them."""
    every = range(numbers[0], numbers[0] + len(numbers))
    return every if list(every) == numbers else numbers


def _latest(index: "array[int]", again: "array[int]", newest: int, most: int) -> List[int]:
    """Return the places of the latest whole steps, in order."""
    latest: List[int] = []
    for number in range(newest, max(0, newest - most), -1):
        at = number % len(index)
        if index[at] == number == again[at]:
            latest.append(at)
        elif latest:
            break
    return latest[::-1]


def _micros(times: Sequence[int]) -> "array[int]":
    if not any(times):  # Most jobs neither save nor evaluate in a step.
        return array("I", bytes(4 * len(times)))
    try:
        return array("I", [time // 1000 for time in times])
    except OverflowError:
        return array("I", [min(time // 1000, _LONGEST) for time in times])


def of_calls(rows: Sequence[Tuple[Any, ...]], texts: Mapping[int, Any]) -> StepTimes:
    """Return the steps of a job without a backward pass, by its records: from the end of one call of a line to the end of the next.

    All ranks must choose the same line: of the lines of the largest group, the least often called.
    """
    outer = [row for row in rows[-_LATEST:] if not row[_OUTER] and row[_OP] < schema.ABOUT_GROUPS and not row[_FLAGS] & schema.SIDE_THREAD]
    counts = Counter([(row[_GROUP], row[_OP], row[_SITE]) for row in outer if row[_OP] < schema.POINT_TO_POINT and row[_LEFT] & 3 == schema.RETURNED])
    often = {key: count for key, count in counts.items() if count > FEW}
    largest = max([getattr(texts.get(group), "size", 0) for group, _, _ in often], default=0)
    of_all = {key: count for key, count in often.items() if getattr(texts.get(key[0]), "size", 0) == largest}
    rare = [key for key, count in of_all.items() if count <= min(of_all.values()) * 1.2 + 1]  # A rank may be a call ahead.
    if not rare:
        return StepTimes()
    mark = min(rare, key=lambda key: (key[1], str(texts.get(key[2])), str(texts.get(key[0]))))
    return _between(list(_met(outer, mark))[-KEPT - 1 :])


def _met(rows: Sequence[Tuple[Any, ...]], mark: Tuple[int, int, int]) -> Iterator[Tuple[int, int, int]]:
    """Yield the number and the end of each call of the line, and the time spent in calls since the previous one."""
    inside = 0
    for row in rows:
        if row[_LEFT] & 3 != schema.RETURNED:
            continue
        left = row[_LEFT] >> 2
        began = row[_WAITED] or left if row[_FLAGS] & schema.ASYNC else row[_ENTERED]
        inside += max(0, left - began)
        if (row[_GROUP], row[_OP], row[_SITE]) == mark:
            yield row[_SEQ], left, inside
            inside = 0


def _between(met: Sequence[Tuple[int, int, int]]) -> StepTimes:
    took = _micros([max(0, after[1] - before[1]) for before, after in zip(met, met[1:])])
    parts = {name: array("I", bytes(4 * len(took))) for name in PARTS}
    parts["waiting"] = _micros([inside for _, _, inside in met[1:]])
    return StepTimes(counted([seq for seq, _, _ in met[1:]]), took, parts, met[-1][1]) if took else StepTimes()
