"""Tells torch.compile which frames are ours: it would compile them, or report that it cannot compile them."""

import sys
from types import CodeType
from typing import Any, Optional

from ddp_probe.traced.patching._importlib_bootstrap_frame import call
from ddp_probe.traced.patching.dispatch import after, before, cut_short, raised
from ddp_probe.traced.patching.frames import shed


def dynamo() -> Any:
    """Return the C module that decides for each frame whether it is compiled; None if this torch has none."""
    return getattr(sys.modules.get("torch._C._dynamo"), "eval_frame", None)


def hide(code: Optional[CodeType], and_below: bool = True) -> None:
    """Let the frames of our code, and of what it calls, run as they are."""
    decides = dynamo()
    if decides is None or code is None:
        return
    if hasattr(decides, "set_code_exec_strategy"):
        skip, default = decides._FrameAction.SKIP, decides._FrameAction.DEFAULT
        decides.set_code_exec_strategy(code, decides._FrameExecStrategy(skip, skip if and_below else default))
    elif hasattr(decides, "skip_code"):  # torch before 2.7
        decides.skip_code(code)


def hide_wrappers() -> None:
    """Let the frame that a wrapper adds run as it is, and what it calls, but not the original below it."""
    hide(call.__code__, and_below=False)
    for called in (before, after, raised, cut_short, shed):
        hide(called.__code__)
