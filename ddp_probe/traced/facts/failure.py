"""Describes an exception: its type, message and origin. Its __str__ is called only if it is Python's own."""

from types import TracebackType
from typing import Any, Callable, List, Optional, Tuple

from ddp_probe.shared.masks import masked
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import Failure, Site
from ddp_probe.traced.facts.call_site import PROBE, module_of, site, within
from ddp_probe.traced.facts.describe import bases, class_contents, class_name, describe

_MESSAGE, _TAIL, _CUT = 2000, 900, "\n[...]\n"
_LINE, _LINE_END, _LINE_CUT, _LINES, _LONGEST_LINE = 700, 200, " [...] ", 200, 20_000
_FIRST, _LAST = 10, 30
_FRAME, _SOURCE = '  File "', "    "  # How the lines of a traceback begin that a worker sends as text.
_WALK = 10_000

# Exceptions of these modules build their text from their own arguments.
_OF_TEXT = ("ray",)  # Its exceptions hold the traceback of a worker as text.
_TRUSTED = ("builtins", "torch", "mmengine", "mmcv", "subprocess", "json", "msgspec", "concurrent", "asyncio", "multiprocessing")

_args: Callable[[BaseException], Any] = BaseException.__dict__["args"].__get__
_traceback: Callable[[BaseException], Optional[TracebackType]] = BaseException.__dict__["__traceback__"].__get__
_cause: Callable[[BaseException], Optional[BaseException]] = BaseException.__dict__["__cause__"].__get__
_silenced: Callable[[BaseException], bool] = BaseException.__dict__["__suppress_context__"].__get__
_context: Callable[[BaseException], Optional[BaseException]] = BaseException.__dict__["__context__"].__get__


def _arguments(exc: BaseException) -> Tuple[Any, ...]:
    arguments = _args(exc)
    return arguments if type(arguments) is tuple else ()


def _plain(exc: BaseException) -> bool:
    """Return whether str(exc) runs none of the job's code, neither in its class nor in its arguments."""
    owner = next(kind for kind in bases(type(exc)) if "__str__" in class_contents(kind))
    module = str(class_contents(owner).get("__module__", "builtins"))
    if not within(module, _TRUSTED):
        return within(module, _OF_TEXT)
    held = _arguments(exc) + ((exc.filename, exc.filename2) if type(exc) is OSError else ())
    return all(type(item) in (str, int, float, bool, type(None), bytes) for item in held)


def said(exc: BaseException) -> str:
    """Return the text of an exception, whole; empty if only code of the job's could say it."""
    try:
        return str(exc) if _plain(exc) else ""
    except ours(Exception):
        return ""


def _message(exc: BaseException) -> str:
    return _shortened(said(exc)) or _described(exc)


def _shortened(text: str) -> str:
    """Mask and cut; a long text keeps its last lines too, which launchers report of a child's traceback."""
    if len(text) <= _MESSAGE:
        return masked(text, _MESSAGE)
    lines = _without_source(text.split("\n", _LINES))
    text = "\n".join(_line(line, max(_LINE, _MESSAGE // len(lines))) for line in lines)
    tail = text[-_TAIL:].partition("\n")[2] if len(text) > _MESSAGE else ""  # a whole line: half a secret would not be recognised
    if not tail:
        return masked(text, _MESSAGE)
    return masked(text, _MESSAGE - len(_CUT) - len(tail)) + _CUT + masked(tail, len(tail))


def _without_source(lines: List[str]) -> List[str]:
    """Leave out the source and the carets below each frame of a traceback: more frames stay, and the files have the source."""
    kept: List[str] = []
    below = False  # Whether the line above is of a frame.
    for line in lines:
        is_frame = line.startswith(_FRAME)
        below = is_frame or (below and line.startswith(_SOURCE))
        if is_frame or not below:
            kept.append(line)
    return kept


def _line(text: str, limit: int) -> str:
    """Cut a long line in its middle: the beginning and the end of a list of keys identify it."""
    if len(text) <= limit:
        return text
    text = masked(text, _LONGEST_LINE)  # Before it is cut: half a secret would not be recognised.
    end = text[-_LINE_END:].partition(" ")[2]
    return text[: limit - len(_LINE_CUT) - len(end)] + _LINE_CUT + end


def _described(exc: BaseException) -> str:
    held = _arguments(exc)
    if len(held) == 1 and issubclass(type(held[0]), str):
        return _shortened(str.__str__(held[0]))
    return describe(held, _MESSAGE) if held else ""


def _frames(exc: BaseException) -> List[Site]:
    frames: List[Site] = []
    step = _traceback(exc)
    for _ in range(_WALK):
        if step is None:
            break
        if not within(module_of(step.tb_frame), PROBE):
            frames.append(site(step.tb_frame.f_code, step.tb_lineno))
        step = step.tb_next
    return frames


def _cause_of(exc: BaseException) -> str:
    origin = _cause(exc)
    if origin is None and not _silenced(exc):
        origin = _context(exc)
    return "" if origin is None else class_name(origin)


def _said_by_cause(exc: BaseException) -> str:
    """Return the message of the exception's explicit cause (raise … from), or an empty string."""
    origin = _cause(exc)
    return "" if origin is None else _message(origin)


def failure(exc: BaseException) -> Failure:
    """Describe an exception; a long traceback is cut to its first ten and last thirty frames."""
    frames = _frames(exc)
    shown = frames if len(frames) <= _FIRST + _LAST else frames[:_FIRST] + frames[-_LAST:]
    return Failure(
        type=class_name(exc),
        message=_message(exc),
        raised_at=frames[-1] if frames else None,
        frames=shown,
        cause=_cause_of(exc),
        cause_message=_said_by_cause(exc),
    )
