"""The parameters of an original; read from its signature when somebody first asks, then kept."""

import inspect
from typing import Any, Callable, Optional

from ddp_probe.shared.ours import ours


class Parameters:
    """The signature of an original, and whether its first parameter is an instance or a class."""

    __slots__ = ("bound", "original", "_read", "_signature")

    def __init__(self, original: Callable[..., Any], bound: bool) -> None:
        self.original = original
        self.bound = bound
        self._read = False
        self._signature: Optional[inspect.Signature] = None

    def signature(self) -> Optional[inspect.Signature]:
        """Return the signature, or None if the original has none that can be read."""
        if not self._read:
            try:
                self._signature = inspect.signature(self.original)
            except ours(ValueError, TypeError):
                self._signature = None
            self._read = True
        return self._signature
