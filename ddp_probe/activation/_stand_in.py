"""Promoted: a helper that became a rank by calling init_process_group, as under mp.spawn, notebook launchers, Ray and Lightning's spawn.

Until then a plain function replaces init_process_group, so that a DataLoader worker loads only this file of the probe.
"""

from __future__ import annotations

import functools
import sys

from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict

_NAME = "init_process_group"
_undo: Dict[str, Callable[[], None]] = {}


def stand_in(module: ModuleType, promote: Callable[[Dict[str, Any]], None]) -> None:
    """Put a function in place of init_process_group that promotes this process, steps aside and passes the call on."""
    original = getattr(module, _NAME, None)
    if original is None or _NAME in _undo:
        return

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        step_aside()
        promote(_named(original, args, kwargs))
        return getattr(module, _NAME)(*args, **kwargs)

    def put_back() -> None:
        for holder in list(sys.modules.values()):
            names = getattr(holder, "__dict__", None)
            if type(names) is dict and names.get(_NAME) is init_process_group:
                names[_NAME] = original

    _undo[_NAME] = put_back
    setattr(module, _NAME, init_process_group)


def _named(function: Any, args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """Return the arguments by name; their order is not the same in every torch."""
    import inspect

    try:
        return dict(inspect.signature(function).bind_partial(*args, **kwargs).arguments)
    except ours(TypeError, ValueError):  # the call itself will say so
        return kwargs


def step_aside() -> None:
    """Put the original back wherever the stand-in is."""
    put_back = _undo.pop(_NAME, None)
    if put_back is not None:
        put_back()
