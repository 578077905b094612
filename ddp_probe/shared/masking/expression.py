"""Regular expressions that are compiled on first use.

Most processes never use them, and every rank pays for everything loaded at start-up.
"""

import re
from typing import Any, AnyStr, Callable, Generic, Iterator, List, Match, Optional


class Expression(Generic[AnyStr]):
    """A lazy re.Pattern. A method becomes an attribute at its first call; later calls cost as much as the pattern's own."""

    _pattern: AnyStr
    search: Callable[..., Optional[Match[AnyStr]]]
    match: Callable[..., Optional[Match[AnyStr]]]
    finditer: Callable[..., Iterator[Match[AnyStr]]]
    findall: Callable[..., List[Any]]
    sub: Callable[..., AnyStr]

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not a method of a pattern
            raise AttributeError(name)
        found = getattr(re.compile(self._pattern, self._flags), name)  # re caches compiled patterns
        setattr(self, name, found)
        return found
