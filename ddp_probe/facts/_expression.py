"""Regular expressions that most processes never ask for: each is compiled when it is first used.

A start of a rank pays for all that is loaded with it.
"""

import re
from typing import Any, AnyStr, Callable, Generic, Iterator, List, Match, Optional


class Expression(Generic[AnyStr]):
    """Stands for a re.Pattern; what is called on it once is its own attribute from then on, and costs as much as the pattern's."""

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
        if name.startswith("_"):  # nothing of a pattern that is used here
            raise AttributeError(name)
        found = getattr(re.compile(self._pattern, self._flags), name)  # re keeps what it has compiled
        setattr(self, name, found)
        return found
