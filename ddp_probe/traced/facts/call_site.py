"""Finds the line of the job that made a call, and the stacks of all threads, by walking frames: no source is read, nothing is imported."""

import collections
import functools
import gc
import itertools
import operator
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ddp_probe.shared import threads
from ddp_probe.shared.own_code import foreign, framework, of_installed_program, package, standard, starts_a_child
from ddp_probe.shared.schema import Site, ThreadStack
from ddp_probe.traced.facts.birth import cpu_of_children

_FRAMES = 200
_CHARACTERS = 500
_THROUGH = 8
_PROGRAM = ("__main__", "__mp_main__")  # The second in a child of multiprocessing.

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
    own = of_installed_program([frame.f_code.co_filename for frame in inside], _launched(inside))
    return (None, _sites(inside)) if own is None else (site(inside[own].f_code, inside[own].f_lineno), _sites(inside[:own]))


def _launched(frames: List[FrameType]) -> str:
    """Return the file of the program that was launched, if it is among these frames, innermost first."""
    for frame in reversed(frames):
        file = frame.f_code.co_filename
        if module_of(frame) in _PROGRAM and not standard(file):
            return file
    return ""


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


def is_called_by(module: str, function: str) -> bool:
    """Return whether the innermost frame outside the probe is this function."""
    walked: Optional[FrameType] = sys._getframe(1)
    while walked is not None and within(module_of(walked), PROBE):
        walked = walked.f_back
    return walked is not None and walked.f_code.co_name == function and module_of(walked) == module


# The Python stacks of all threads, read without importing, waiting or touching a source file.

_OUTER, _INNER = 24, 40
_DEEP = 10_000
_THREADS = 64
_CALL = operator.methodcaller("__call__")
_MAY_DANGLE = sys.version_info[:2] == (3, 11)
"""Python 3.11 makes the object of a frame when it is asked for, and may collect garbage meanwhile. If a finalizer then lets another thread run,
its frame can be gone before the object is there: a wrong object, or the end of the process. Later versions do not collect there."""


def undisturbed(wanted: Iterator[Any], without_collection: bool = _MAY_DANGLE) -> List[Any]:
    """Return what an iterator yields that is C code all through: no other thread runs meanwhile, if no collection runs finalizers in it."""
    results: List[Any] = []
    take: Callable[[], None] = functools.partial(results.extend, wanted)
    if without_collection:
        collects = itertools.chain.from_iterable(map(itertools.repeat, map(_CALL, (gc.isenabled,))))
        try:
            collections.deque(map(_CALL, itertools.compress((gc.disable, take, gc.enable), collects)), 0)
        except BaseException:
            gc.enable()
            raise
    take()  # All of it, if the collector is off.
    return results


def _innermost() -> Dict[int, FrameType]:
    """Return the frame in which each thread is, by its ident."""
    frames: Dict[int, FrameType] = undisturbed(map(_CALL, (sys._current_frames,)))[0]
    return frames


def _chain(frame: Iterator[Optional[FrameType]]) -> Iterator[Any]:
    """Return the one frame of an iterator and its callers, innermost first, by C code alone."""
    outwards: Iterator[Any] = itertools.chain(frame, itertools.repeat("f_back", _DEEP))
    return itertools.takewhile(bool, itertools.accumulate(outwards, getattr))


def _outwards(frame: Optional[FrameType], *attributes: str) -> List[Any]:
    """Return these attributes of a frame of any thread, and of each of its callers. No frame is held."""
    attributes_of = operator.attrgetter(*attributes)
    return undisturbed(map(attributes_of, _chain(iter((frame,)))))


def chain_of_main_thread() -> Callable[[], Iterator[Any]]:
    """Return what makes an iterator over the frames of the main thread, innermost first, by C code alone."""
    ident = _main(_innermost())

    def chain() -> Iterator[Any]:
        innermost: Iterator[Any] = map(dict.get, map(_CALL, (sys._current_frames,)), (ident,))
        return _chain(innermost)

    return chain


def thread_stacks(without: int = 0) -> List[ThreadStack]:
    """Return the stack of each thread, the main one first, without frames of the probe; `without` is the ident of a thread to leave out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    innermost = _innermost()
    main = _main(innermost)
    frames = sorted(innermost.items(), key=lambda innermost: (innermost[0] != main, innermost[0]))
    return [
        ThreadStack(name=names.get(ident) or "thread-%d" % ident, main=ident == main, frames=_stack(frame))
        for ident, frame in frames[:_THREADS]
        if ident != without
    ]


def _main(frames: Dict[int, FrameType]) -> int:
    """Return the ident of the main thread; gevent gives it another one, which no frame has."""
    ident = threading.main_thread().ident or 0
    return ident if ident in frames else threads.FIRST


class MainThread:
    """Since when the main thread has stood at one line, and its callers at theirs, as far as looks from time to time can tell."""

    def __init__(self) -> None:
        self.since_ns = time.monotonic_ns()
        self._lines: Tuple[Tuple[int, int], ...] = ()
        self._was_elsewhere = False
        self._busy = self._children = 0.0

    def look(self) -> None:
        """Look once. One look at other lines is forgiven: who polls for something leaves its sleep for a moment."""
        frames = _innermost()
        lines = _lines(frames.get(_main(frames)))
        is_elsewhere = lines != self._lines
        if not is_elsewhere or (self._lines and not self._was_elsewhere):
            self._was_elsewhere = is_elsewhere
            return
        self._lines, self._was_elsewhere = lines, False
        self.begin_again()

    def begin_again(self) -> None:
        """Count from here: it has come to this line, or the process did not run before."""
        self.since_ns, self._busy, self._children = time.monotonic_ns(), time.process_time(), cpu_of_children()

    def is_busy(self) -> bool:
        """Tell whether the process has computed for most of the time since then."""
        return time.process_time() - self._busy > (time.monotonic_ns() - self.since_ns) / 2e9

    def children(self) -> float:
        """Return the CPU seconds of its child processes since then."""
        return max(0.0, round(cpu_of_children() - self._children, 2))


def _lines(frame: Optional[FrameType]) -> Tuple[Tuple[int, int], ...]:
    return tuple([(id(code), line) for code, line in _outwards(frame, "f_code", "f_lineno")])


def _stack(frame: Optional[FrameType]) -> List[Site]:
    """Return the frames, outermost first; of a deep stack those in the middle are left out: an import stands many frames below the job's line."""
    places: List[Tuple[CodeType, int]] = []
    for space, code, line in _outwards(frame, "f_globals", "f_code", "f_lineno"):
        name: Any = dict.get(space, "__name__")
        if type(name) is not str or not within(name, PROBE):
            places.append((code, line))
    if len(places) > _OUTER + _INNER:
        places[_INNER:-_OUTER] = []
    return [site(code, line) for code, line in reversed(places)]
