"""The stack, the memo and the limits of a pickle that is followed, and what opcodes do to them."""

import _compat_pickle
from typing import Any, Dict, List, Set

from ddp_probe.reading.checkpoints.values import Blob, Global, Persistent

_KEPT = 4096  # Characters of one text, bytes of one value.
_DEEPEST = 100_000  # Containers within each other: no pickler writes as many, since it calls itself for each.


class TooDeepError(Exception):
    """Nobody has pickled this: it is made to keep its reader busy."""


class Stack:
    """What opcodes work on, with counts of what they have made."""

    def __init__(self) -> None:
        self.globals: Dict[str, Global] = {}
        self.opcodes: Set[str] = set()
        self.misused = ""  # The first use of an opcode that weights_only refuses.
        self.protocol = 0
        self.persistent: List[Persistent] = []
        self.values = self.texts = 0  # Made so far, and characters kept.
        self.restart()

    def restart(self) -> None:
        """Begin a pickle: what an earlier one has left on the stack is not part of it."""
        self.stack: List[Any] = []
        self.metastack: List[List[Any]] = []
        self.memo: Dict[int, Any] = {}
        self._outermost: Any = None  # The container in which all those of a nest are, as far as it is made.
        self._depth = 0

    def nest(self, outer: Any, inner: Any) -> None:
        """Count how deep it goes while containers are put into each other one after another."""
        self._depth = self._depth + 1 if inner is self._outermost else 0
        self._outermost = outer
        if self._depth > _DEEPEST:
            raise TooDeepError

    def make(self, value: Any) -> None:
        """Push a new object, and count it."""
        self.values += 1
        self.stack.append(value)

    def number(self, value: Any) -> None:
        """Push a number; one with more than 64 bits only as its length."""
        if type(value) is int and not -5 <= value <= 256:
            self.values += 1
            value = value if value.bit_length() <= 64 else Blob(value.bit_length() // 8 + 1)
        self.stack.append(value)

    def text(self, value: Any) -> None:
        """Push a text or bytes; a long one only as its length."""
        length = len(value)
        self.values += 1
        self.texts += min(length, _KEPT)
        self.stack.append(value if length <= _KEPT else Blob(length))

    def since_mark(self) -> List[Any]:
        """Return what was pushed since the last mark."""
        items, self.stack = self.stack, self.metastack.pop()
        return items

    def refer(self, module: Any, name: Any) -> None:
        """Push a class or function by name, as Python 3 calls it."""
        if type(module) is not str or type(name) is not str:
            raise ValueError("a class is named by something that is not a text")
        # torch takes any name with Storage in it for a storage, whatever its module.
        if not all(part.isidentifier() for part in ("%s.%s" % (module, name)).split(".")) and "<" not in name and "Storage" not in name:
            raise ValueError("a class is named %r" % ("%s.%s" % (module, name))[:80])
        if (module, name) in _compat_pickle.NAME_MAPPING:
            module, name = _compat_pickle.NAME_MAPPING[(module, name)]
        elif module in _compat_pickle.IMPORT_MAPPING:
            module = _compat_pickle.IMPORT_MAPPING[module]
        found = Global(module, name)
        self.globals.setdefault(found.path, found)
        self.make(found)

    def put(self, index: Any) -> None:
        """Remember the top of the stack under a number."""
        if not 0 <= index < 1 << 32:
            raise ValueError("a memo number of %s" % str(index)[:40])
        self.memo[index] = self.stack[-1]

    def misuse(self, what: str) -> None:
        """Note what weights_only refuses."""
        self.misused = self.misused or what
