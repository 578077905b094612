"""Finds the line of the job that made a call, by walking frames: no source is read, nothing is imported."""

import sys
from types import CodeType, FrameType
from typing import Any, List, Optional, Tuple

from ddp_probe.schema import Site

_FRAMES = 100
_CHARACTERS = 500
_THROUGH = 8

PROBE = ("ddp_probe", "wrapt")
# contextlib and functools stand between a library and its caller where a decorator is used as one.
BETWEEN = ("contextlib", "functools", "typing_extensions")
LIBRARIES = ("torch", "mmengine", "mmcv", "torch_gcu", "torch_npu", "torch_mlu", "torch_musa", *BETWEEN)


def module_of(frame: FrameType) -> str:
    """Return the name of the module that a frame's code belongs to."""
    name: Any = dict.get(frame.f_globals, "__name__")
    return name if type(name) is str else ""


def within(module: str, packages: Tuple[str, ...]) -> bool:
    """Tell whether a module is one of these packages or inside one."""
    return module.split(".", 1)[0] in packages


def site(code: CodeType, line: Optional[int]) -> Site:
    """Return a place in the source; the qualified name where this Python knows it (3.11)."""
    function = getattr(code, "co_qualname", code.co_name)
    return Site(file=code.co_filename[:_CHARACTERS], line=line or 0, function=function[:_CHARACTERS])


def call_site(skip_module_prefixes: Tuple[str, ...] = LIBRARIES, start_frame: Optional[FrameType] = None) -> Optional[Site]:
    """Return the innermost frame outside the probe and the libraries; where there is none, the innermost outside the probe."""
    frame = sys._getframe(1) if start_frame is None else start_frame
    inside: Optional[FrameType] = None
    walked: Optional[FrameType] = frame
    for _ in range(_FRAMES):
        if walked is None:
            break
        module = module_of(walked)
        if not within(module, PROBE):
            if not within(module, skip_module_prefixes):
                return site(walked.f_code, walked.f_lineno)
            inside = inside or walked
        walked = walked.f_back
    return None if inside is None else site(inside.f_code, inside.f_lineno)


def caller_site(start_frame: Optional[FrameType] = None) -> Optional[Site]:
    """Return the innermost frame outside the probe, be it inside torch or mmengine: who passed this argument."""
    return call_site((), sys._getframe(1) if start_frame is None else start_frame)


def call_path(start_frame: Optional[FrameType] = None) -> Tuple[Optional[Site], List[Site]]:
    """Return the job's line, and the libraries' lines between it and the call, outermost first: the last one passed the arguments."""
    walked: Optional[FrameType] = sys._getframe(1) if start_frame is None else start_frame
    inside: List[FrameType] = []
    for _ in range(_FRAMES):
        if walked is None:
            break
        module = module_of(walked)
        if not within(module, LIBRARIES + PROBE):
            return site(walked.f_code, walked.f_lineno), _sites(inside)
        if not within(module, BETWEEN + PROBE):
            inside.append(walked)
        walked = walked.f_back
    return None, _sites(inside)


def _sites(frames: List[FrameType]) -> List[Site]:
    return [site(frame.f_code, frame.f_lineno) for frame in reversed(frames[:_THROUGH])]


def caller_package(start_frame: Optional[FrameType] = None) -> str:
    """Return the top-level package of the innermost frame outside the probe: whether a library calls itself."""
    walked: Optional[FrameType] = sys._getframe(1) if start_frame is None else start_frame
    for _ in range(_FRAMES):
        if walked is None:
            break
        module = module_of(walked)
        if not within(module, BETWEEN + PROBE):
            return module.split(".", 1)[0]
        walked = walked.f_back
    return ""
