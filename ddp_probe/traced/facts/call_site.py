"""Finds the line of the job that made a call, by walking frames: no source is read, nothing is imported."""

import sys
from types import CodeType, FrameType
from typing import Any, List, Optional, Tuple

from ddp_probe.shared.own_code import foreign, framework, of_installed_program, package, starts_a_child
from ddp_probe.shared.schema import Site

_FRAMES = 200
_CHARACTERS = 500
_THROUGH = 8

PROBE = ("ddp_probe", "wrapt")
# contextlib and functools stand between a library and its caller where a decorator is used as one.
BETWEEN = ("contextlib", "functools", "typing_extensions")


def module_of(frame: FrameType) -> str:
    """Return the name of the module that a frame's code belongs to."""
    name: Any = dict.get(frame.f_globals, "__name__")
    return name if type(name) is str else ""


def _top(frame: FrameType) -> str:
    name: Any = dict.get(frame.f_globals, "__name__")
    return name.partition(".")[0] if type(name) is str else ""


def within(module: str, packages: Tuple[str, ...]) -> bool:
    """Tell whether a module is one of these packages or inside one."""
    return module.split(".", 1)[0] in packages


def site(code: CodeType, line: Optional[int]) -> Site:
    """Return a place in the source; with the qualified name if this Python has it (3.11)."""
    function = getattr(code, "co_qualname", code.co_name)
    return Site(file=code.co_filename[:_CHARACTERS], line=line or 0, function=function[:_CHARACTERS])


def call_path(start_frame: Optional[FrameType] = None) -> Tuple[Optional[Site], List[Site]]:
    """Return the job's line, and the libraries' lines between it and the call, outermost first: the last one passed the arguments.

    If the whole program is installed (python -m of a trainer), its own innermost line is the job's.
    """
    walked: Optional[FrameType] = sys._getframe(1) if start_frame is None else start_frame
    inside: List[FrameType] = []
    for _ in range(_FRAMES):
        if walked is None:
            break
        top = _top(walked)
        if top not in PROBE:
            if top not in BETWEEN and not framework(top) and not foreign(walked.f_code.co_filename) and not starts_a_child(walked.f_code):
                return site(walked.f_code, walked.f_lineno), _sites(inside)
            inside.append(walked)
        walked = walked.f_back
    own = of_installed_program([frame.f_code.co_filename for frame in inside])
    return (None, _sites(inside)) if own is None else (site(inside[own].f_code, inside[own].f_lineno), _sites(inside[:own]))


def _sites(frames: List[FrameType]) -> List[Site]:
    shown: List[Site] = []
    for frame in frames:
        if _lies_on_the_way(frame):
            shown.append(site(frame.f_code, frame.f_lineno))
            if len(shown) == _THROUGH:
                break
    return shown[::-1]


def _lies_on_the_way(frame: FrameType) -> bool:
    """Leave out the standard library: decorators and context managers pass no arguments of their own."""
    return framework(_top(frame)) or package(frame.f_code.co_filename) != ""


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
