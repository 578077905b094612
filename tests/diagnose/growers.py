"""Derives texts that attack a regular expression from its own parts: what stands before and in each long repetition, to be repeated."""

import sys
from typing import Any, Dict, List

if sys.version_info >= (3, 11):
    from re import _parser as sre  # type: ignore[attr-defined]
else:
    import sre_parse as sre

_LONG = 40  # A repetition of no more than that is not grown.
_CATEGORIES = {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " ", "CATEGORY_NOT_WORD": " "}


def growers(pattern: str, flags: int) -> List[str]:
    """Return short texts of which thousands in a row may be slow to search."""
    found: Dict[str, None] = {}
    _walk(list(sre.parse(pattern, flags)), "", found, {})
    return list(found)


def _walk(items: List[Any], before: str, found: Dict[str, None], groups: Dict[int, str]) -> str:
    """Collect the texts; return one that the items match."""
    mine = ""
    for item in items:
        mine += _text(str(item[0]), item[1], before + mine, found, groups)
    return mine


def _text(name: str, value: Any, before: str, found: Dict[str, None], groups: Dict[int, str]) -> str:
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, body = value
        once = _walk(list(body), before, found, groups)
        if most > _LONG:
            found.update(dict.fromkeys(text for text in (before, once, before + once, before + once + "\n", before + " ") if text))
        return once * min(least, _LONG)
    if name == "BRANCH":
        samples = [_walk(list(branch), before, found, groups) for branch in value[1]]
        return samples[0]
    if name == "SUBPATTERN":
        groups[value[0]] = _walk(list(value[-1]), before, found, groups)
        return groups[value[0]]
    if name in ("ASSERT", "ASSERT_NOT"):
        _walk(list(value[1]), before, found, groups)
        return ""
    if name == "GROUPREF":
        return groups.get(value, "")
    if name == "GROUPREF_EXISTS":
        return _walk(list(value[1]), before, found, groups)
    return _letter(name, value)


def _letter(name: str, value: Any) -> str:
    if name == "LITERAL":
        return chr(value)
    if name == "NOT_LITERAL":
        return "y" if value == ord("x") else "x"
    if name == "ANY":
        return "x"
    if name == "IN":
        return _of_class(value)
    return ""  # A place, not a letter.


def _of_class(members: List[Any]) -> str:
    kinds = [str(kind) for kind, _ in members]
    if kinds[0] == "NEGATE":
        barred = {chr(value) for kind, value in members if str(kind) == "LITERAL"}
        return next(letter for letter in "x=7 a" if letter not in barred)
    kind, value = members[0]
    if str(kind) == "CATEGORY":
        return _CATEGORIES.get(str(value), "a")
    return chr(value if str(kind) == "LITERAL" else value[0])
