"""Bounds what a pattern costs at each place of a text, for patterns that nobody of this project has measured.

`printed.py` gives each repetition an end, so its time grows with the text; but by how much at each place is
up to the author: `(?:a+)+b` may try millions of ways. What is counted here is the most steps from one place.
"""

import sys
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Sequence

from ddp_probe.judging.printed import Searchable
from ddp_probe.wording.text import Text, say

if sys.version_info >= (3, 11):
    from re import _parser as sre  # type: ignore[attr-defined]
else:  # re._parser is new in Python 3.11
    import sre_parse as sre

MOST = 2000
"""Steps from one place of a text."""
_END, _OTHER = "end", "\uffff"  # The end of the pattern; all characters beyond Latin-1.
_ALL = frozenset(map(chr, range(256))) | {_OTHER}
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_CATEGORIES: Dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda letter: letter.isalnum() or letter in ("_", _OTHER),
}


class CostlyPatternError(ValueError):
    """A pattern that may need too many steps, or has what no search in linear time has; `why` says it."""

    def __init__(self, why: Text) -> None:
        super().__init__(why)
        self.why = why


class _Rest(NamedTuple):
    """What follows in a pattern: the most steps that it takes, and the characters with which it can begin."""

    steps: int
    first: FrozenSet[str]  # With _END if it can be empty.


def refuse_costly(pattern: str) -> None:
    """Raise CostlyPatternError if a pattern may need more than MOST steps from one place."""
    if not pattern:
        return
    searchable = Searchable(pattern)
    for part in searchable.parts():
        rest = _sequence(sre.parse(part), _Rest(0, frozenset([_END])))
        if rest.steps > MOST:
            steps = min(rest.steps, 10**9)
            raise CostlyPatternError(say("{steps} steps at each character", steps=steps))
    if not searchable.has_word():
        raise CostlyPatternError(say("it has no three letters in a row that each match has"))


def _sequence(items: Iterable[Any], rest: _Rest) -> _Rest:
    """Count from the end: what a repetition costs depends on what follows it."""
    for item in reversed(list(items)):
        rest = _item(str(item[0]), item[1], rest)
    return rest


def _item(name: str, value: Any, rest: _Rest) -> _Rest:
    if name == "AT":
        return _Rest(rest.steps + 1, rest.first)
    if name in ("ASSERT", "ASSERT_NOT"):
        inside = _sequence(value[1], _Rest(0, frozenset([_END])))
        return _Rest(rest.steps + inside.steps + 1, _ALL)
    if name == "SUBPATTERN":
        return _sequence(value[3], rest)
    if name == "BRANCH":
        return _either([_sequence(branch, rest) for branch in value[1]])
    if name in _REPEATS:
        return _repeated(int(value[0]), int(value[1]), list(value[2]), rest)
    return _Rest(rest.steps + 1, _letters(name, value))


def _either(ways: Sequence[_Rest]) -> _Rest:
    first: FrozenSet[str] = frozenset()
    return _Rest(sum(way.steps for way in ways), first.union(*(way.first for way in ways)))


def _repeated(least: int, most: int, body: List[Any], rest: _Rest) -> _Rest:
    """Count a repetition: if what follows cannot be confused with it, there is one way to match it."""
    if most == 1:
        once = _sequence(body, rest)
        return once if least else _either([once, rest])
    if most >= int(sre.MAXREPEAT):
        raise CostlyPatternError(say("a repetition without an end"))
    name, value = str(body[0][0]), body[0][1]
    is_letter = len(body) == 1 and name in ("LITERAL", "NOT_LITERAL", "ANY", "IN")
    if not is_letter:
        raise CostlyPatternError(say("a repeated group; it may be optional, but not repeated"))
    letters = _letters(name, value)
    is_clear = _END in rest.first or not letters & rest.first
    ways = 1 if is_clear else most - least + 1
    return _Rest(most + ways * max(rest.steps, 1), letters if least else letters | rest.first)


def _letters(name: str, value: Any) -> FrozenSet[str]:
    """Return the characters that one item matches, each in both cases."""
    if name == "ANY":
        return _ALL
    if name == "LITERAL":
        return _of_codes([value])
    if name == "NOT_LITERAL":
        return _ALL - {chr(value)}
    if name == "IN":
        return _of_class(value)
    raise CostlyPatternError(say("{name}, which no search in linear time has", name=name.lower()))


def _of_class(members: Sequence[Any]) -> FrozenSet[str]:
    letters: FrozenSet[str] = frozenset()
    is_negated = False
    for kind, value in members:
        word = str(kind)
        if word == "NEGATE":
            is_negated = True
        elif word == "LITERAL":
            letters |= _of_codes([value])
        elif word == "RANGE":
            letters |= _of_codes(range(value[0], min(value[1], 256) + 1))
            letters |= {_OTHER} if value[1] > 255 else frozenset()
        else:
            letters |= _of_category(str(value))
    return (_ALL - letters) | {_OTHER} if is_negated else letters


def _of_category(name: str) -> FrozenSet[str]:
    is_in = _CATEGORIES[name.replace("_NOT_", "_")]
    letters = frozenset(letter for letter in _ALL if is_in(letter)) | {_OTHER}
    return (_ALL - letters) | {_OTHER} if "_NOT_" in name else letters


def _of_codes(codes: Iterable[int]) -> FrozenSet[str]:
    letters = "".join(_OTHER if code > 255 else chr(code) for code in codes)
    return frozenset(letters + letters.lower() + letters.upper())
