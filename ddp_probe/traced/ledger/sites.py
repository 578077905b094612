"""Call sites for the ledger: the job's innermost line, and the way to it, as numbers of texts, looked up without building anything once known.

Beside it, the signal in whose handler the call is made. The code of a handler is never kept, so that each call that it makes is looked at. One that
it makes by a function of the job that has made the same call before is not.
"""

import _signal  # type: ignore[import-not-found]  # typeshed leaves it out. The functions of signal make enumerations of what they return, for which a handler's own __eq__ would run.
import sys
from functools import partial
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ddp_probe.shared import ledger_schema
from ddp_probe.shared.masks import masked
from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, framework, starts_a_child
from ddp_probe.traced.facts.call_site import BETWEEN, PROBE, call_path, module_of
from ddp_probe.traced.ledger.line_arms import LineArms
from ddp_probe.traced.ledger.loop_items import Loop, LoopFinder, item_at
from ddp_probe.traced.record.ledger_memory import LedgerFile

_FRAMES = 100
_CODES = 10_000  # code objects that are distinguished; a program that compiles in a loop has no end of them
_NEVER_THE_JOBS = (*BETWEEN, *PROBE)
_bases, _contents = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__  # A metaclass may answer for them.
LINE = (1 << 32) - 1
"""The bits of what is found that are the number of the line. Above it are the number of the signal, 0 for none, and the item."""
SIGNAL, ITEM_BITS = (1 << 8) - 1, 40
"""The bits of the signal, and the bit at which the item begins."""


_DEPTH = (None,) * 64  # how many frames of a way are told apart
_LONGEST_WAY = 32  # lines of the job that a way has at most: the innermost
_WAYS = 1000  # different ways that are kept; each is a text of some 30 bytes


Place = Tuple[int, int]
"""The number of the job's line, with the signal and the item above it, and that of the way to it; 0 for what is not known."""
_NOWHERE = (0, 0)


def finder(file: LedgerFile, with_items: bool = False) -> Callable[[], Place]:  # noqa: C901, PLR0915  # A class costs more.
    """Return what finds the place that called its caller's caller; closures, as an attribute costs as much as the rest of a step.

    A place in a loop over names is found with the item at which the loop is. It is kept apart, so that other places cost no more.
    """
    codes: Dict[int, Optional[Dict[int, int]]] = {}  # by id(code): the numbers by instruction, None if the code is not the job's own
    kept: List[Any] = []  # the code objects, so that no other one gets their ids
    unknown: Any = {}  # of a code that has not been met
    frame_of = sys._getframe
    places: Any = {}  # by what their frames add up to
    known = places.get
    in_loops: Dict[int, Tuple[Place, Loop]] = {}  # the same, of places whose item has to be looked at
    loops = LoopFinder() if with_items else None
    arms = LineArms()
    of_places: List[Any] = []  # the code objects of their frames

    def find() -> Place:
        """Add up the frames: building a key of them would cost more than all the rest. Other frames that add up to the same are not met."""
        try:
            frame: Any = frame_of(3)
        except ours(ValueError):  # A thread has nothing but the call to run.
            return _NOWHERE
        total = 0
        for _ in _DEPTH:
            total += id(frame.f_code) * (frame.f_lasti + 3)
            frame = frame.f_back
            if frame is None:
                break
        return known(total) or learn_place(total, frame_of(3))

    def learn_place(total: int, start: FrameType) -> Place:
        looped = in_loops.get(total)
        if looped is not None:
            (line, way), loop = looped
            return line | item_at(loop, start) << ITEM_BITS, way
        line = search(start)
        if not 0 < line <= LINE or len(of_places) >= _WAYS:
            return line, 0  # In a handler each call is looked at.
        walked: Optional[FrameType] = start
        lines: List[int] = []
        passed: List[CodeType] = []
        while walked is not None and len(passed) < len(_DEPTH):
            passed.append(walked.f_code)
            number = line_of(walked)
            if number is not None:
                lines.append(number)
            walked = walked.f_back
        text = " ".join(["%d" % number for number in reversed(lines[:_LONGEST_WAY])])
        way = file.text(ledger_schema.WAY, text) if lines and all(lines) else 0
        of_places.append(passed)
        found = loops.around(start, is_the_jobs) if loops is not None else None
        if found is not None:
            in_loops[total] = (line, way), found
            return line | item_at(found, start) << ITEM_BITS, way
        place = places[total] = line, way
        return place

    def is_the_jobs(code: CodeType) -> bool:
        return codes.get(id(code)) is not None

    def line_of(frame: FrameType) -> Optional[int]:
        """Return the number of the line at which a frame of the job stands; None for any other frame."""
        found = codes.get(id(frame.f_code), unknown)
        if found is unknown:
            found = learn(frame)
        if found is None:
            return None
        return found.get(frame.f_lasti) or file.text(ledger_schema.SITE, _line(frame, arms))

    def search(start: FrameType) -> int:
        walked, is_new = start, False
        for _ in range(_FRAMES):
            lines = codes.get(id(walked.f_code), unknown)
            if lines is unknown:
                lines, is_new = learn(walked), True
            if lines is not None:
                number = lines.get(walked.f_lasti)
                handled = signal_handled(start) if is_new or number is None else 0
                if number is None:
                    number = file.text(ledger_schema.SITE, _line(walked, arms))
                    if not handled:
                        lines[walked.f_lasti] = number
                return int(number) | handled << 32
            if walked.f_back is None:
                break
            walked = walked.f_back
        return of_installed(start) | (signal_handled(start) << 32 if is_new else 0)

    def learn(frame: FrameType) -> Optional[Dict[int, int]]:
        if len(kept) >= _CODES:
            codes.clear()
            kept.clear()
        code = frame.f_code
        top = module_of(frame).partition(".")[0]
        others = top in _NEVER_THE_JOBS or framework(top) or foreign(code.co_filename) or starts_a_child(code)
        found: Optional[Dict[int, int]] = None if others else {}
        if id(code) not in _handlers():
            kept.append(code)
            codes[id(code)] = found
        return found

    def of_installed(frame: FrameType) -> int:
        found, _ = call_path(frame)
        return 0 if found is None else file.text(ledger_schema.SITE, "%s\n%d\n%s" % (found.file, found.line, found.function))

    return find


def _line(frame: FrameType, arms: LineArms) -> str:
    code = frame.f_code
    # Masked before it is cut: half a secret would not be recognised.
    function = masked(getattr(code, "co_qualname", code.co_name), 500)
    line = "%s\n%d\n%s" % (masked(code.co_filename, 500), frame.f_lineno or 0, function)
    arm = arms.number(code, frame.f_lasti)
    return "%s\n%d" % (line, arm) if arm else line


def signal_handled(frame: Optional[FrameType]) -> int:
    """Return the number of the signal in whose handler this frame is; 0 if it is in none."""
    handlers = _handlers()
    for _ in range(_FRAMES):
        if frame is None or not handlers:
            return 0
        number = _interrupted_by(frame) if id(frame.f_code) in handlers else 0
        if number:
            return number
        frame = frame.f_back
    return 0


def _interrupted_by(frame: FrameType) -> int:
    """Return the signal for which Python has called a function: with its number and the frame that it interrupted. Others may call it, too."""
    code, before = frame.f_code, 0
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
    for value in [frame.f_locals.get(name) for name in names]:
        for one in value if type(value) is tuple else (value,):
            if one is frame.f_back is not None:
                return before
            before = one if type(one) is int and 0 < one < 1 << 7 else 0
    return 0


def _handlers() -> Set[int]:
    """Return the ids of the codes that run when a signal comes."""
    found = [_signal.getsignal(number) for number in range(1, 32)]
    return {id(_code_of(handler)) for handler in found if handler is not None and type(handler) is not int}


def _code_of(handler: Any) -> Optional[CodeType]:
    """Return the code that runs when this is called; no code of the job runs for that."""
    for _ in range(4):
        if type(handler) is FunctionType:
            return handler.__code__
        if type(handler) is MethodType:
            handler = handler.__func__
        elif type(handler) is partial:
            handler = handler.func
        else:
            called = [_contents(base)["__call__"] for base in _bases(type(handler)) if "__call__" in _contents(base)]
            handler = called[0] if called else None
    return None
