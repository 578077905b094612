"""What a pickle describes, as data: no class is looked up and nothing is called. Lists and tuples are Python's own."""

from typing import Any, List, NamedTuple


class Global(NamedTuple):
    """A class or function by name."""

    module: str
    name: str

    @property
    def path(self) -> str:
        """Return the dotted name."""
        return "%s.%s" % (self.module, self.name)


class Mapping:
    """A dictionary, as the pairs that were set; a key may be anything."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: List[Any] = []  # Key, value, key, value.

    def get(self, name: str) -> Any:
        """Return the value of a text key; the last one counts."""
        found = None
        for index in range(0, len(self.pairs) - 1, 2):
            if type(self.pairs[index]) is str and self.pairs[index] == name:
                found = self.pairs[index + 1]
        return found


class PickledCall:
    """What calling a function, or making an object of a class, would return, with what is put into it afterwards."""

    __slots__ = ("arguments", "function", "items", "pairs", "state")

    def __init__(self, function: Any, arguments: Any) -> None:
        self.function = function
        self.arguments = arguments
        self.state: Any = None
        self.items: List[Any] = []
        self.pairs: List[Any] = []


class Persistent:
    """What the program that loads the file finds by itself, such as a tensor's storage."""

    __slots__ = ("identity",)

    def __init__(self, identity: Any) -> None:
        self.identity = identity


class PickledSet:
    """A set or a frozen set."""

    __slots__ = ("items",)

    def __init__(self, items: List[Any]) -> None:
        self.items = items


class Blob(NamedTuple):
    """Bytes, or a text or number too long to keep."""

    length: int
