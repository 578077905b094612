"""What the flags of a forward pass say of its model: which one it is, and whether ranks meet there.

They meet in buffers that DDP sends in it, or in the gradients of the backward pass behind it. A rank counts
models as it first passes them forward, and only those of all ranks: a group may have models of its own.
"""

import sys
import weakref
from typing import Any, Callable, Dict, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.traced.ledger.groups import default_group

_own = object.__getattribute__  # A class of the job's may answer for its attributes.
_Known = Tuple[Callable[[], Any], int]


class WrappedModels:
    """Counts the models of one rank."""

    def __init__(self) -> None:
        self._known: Dict[int, _Known] = {}  # By id(), with what tells whether another model has the id now.
        self._count = 0
        self._has_gradients: Callable[[], bool] = sys.modules["torch"].is_grad_enabled

    def flags(self, model: Any) -> int:
        """Return the flags of a pass of this model that begins now; its own code is not asked."""
        value = _own(model, "__dict__").get
        holds_back = value("require_backward_grad_sync") is False
        flags = schema.HELD_BACK if holds_back else 0
        buffers = value("modules_buffers")
        sends = value("forward_sync_buffers", value("broadcast_buffers")) is True  # torch 2.13, older
        if sends and value("require_forward_param_sync") is True and type(buffers) is list and buffers:
            flags |= schema.SENDS_BUFFERS
        elif holds_back or not self._has_gradients():
            return flags
        return flags | self._number(model, value) << schema.MODEL_BITS

    def _number(self, model: Any, value: Callable[[str], Any]) -> int:
        known = self._known.get(id(model))
        if known is not None and known[0]() is model:
            return known[1]
        if self._count >= schema.MODELS or value("process_group") is not default_group():
            return 0
        self._count += 1
        self._known[id(model)] = weakref.ref(model), self._count
        return self._count
