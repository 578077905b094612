"""Reads the variables of functions that run, in any thread, and writes nothing: neither the frame nor the job can notice it.

Up to Python 3.12, `frame.f_locals` copies the variables into a dict that the frame keeps, which tracers write back and which keeps tensors alive.
So the slots of the variables are read where they lie. Their place is tried on frames of our own first. Decision 0055 has the reasons.
"""

import dis
import functools
import itertools
import operator
import sys
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.call_site import chain_of_main_thread, undisturbed

HAS_VIEW = sys.version_info >= (3, 13)
"""PEP 667: f_locals is a view of the slots, also of a function that runs."""
_FUNCTION = 1  # CO_OPTIMIZED: the variables are not in a dict.
_HAS_INNER_FRAME = sys.version_info >= (3, 11)
_DIES_IN_PLACE = sys.version_info[:2] == (3, 11)
_HAS_KNOWN_PLACE = sys.implementation.name == "cpython" and (3, 8) <= sys.version_info < (3, 13) and sys.maxsize > 1 << 32
_WORD, _BEFORE_SLOTS = 8, 72
_RETURNS = dis.opmap.get("RETURN_VALUE")
_DEEP = 10_000
_CALL = operator.methodcaller("__call__")
_PLACE = operator.attrgetter("f_code", "f_lasti")


class FrameLook(NamedTuple):
    """What was read of one frame."""

    code: CodeType
    line: int
    variables: Dict[str, Any]


class _Place(NamedTuple):
    """The place of a frame, without the frame."""

    code: CodeType
    instruction: int
    line: int
    space: Dict[str, Any]


Chooses = Callable[[CodeType, Dict[str, Any]], bool]
"""Tells by its code and its globals whether a frame is to be read."""


def look_at_main_thread(is_wanted: Chooses, most: int) -> List[FrameLook]:
    """Return the variables of the frames that are wanted, innermost first; none if the main thread moves meanwhile.

    The first look holds no frame, and the second reads only if each frame is where it was then.
    """
    chain = chain_of_main_thread()
    attributes_of = operator.attrgetter("f_code", "f_lasti", "f_lineno", "f_globals")
    places = [_Place(*place) for place in undisturbed(map(attributes_of, chain()))]
    wanted = [depth for depth, place in enumerate(places) if not _is_dying(place) and is_wanted(place.code, place.space)][:most]
    functions = [depth for depth in wanted if places[depth].code.co_flags & _FUNCTION]
    variables = _of_functions(chain, places, functions)
    return [_look(places[depth], variables.get(depth, {})) for depth in wanted]


def look_at_traceback(step: Any, is_wanted: Chooses, most: int) -> List[FrameLook]:
    """Return the variables of the frames that an exception has left, innermost first; a frame that still runs is left out."""
    running = {id(frame) for frame in _callers(sys._getframe())}
    looks: List[FrameLook] = []
    for frame, line in reversed(list(_steps(step))):
        if len(looks) < most and id(frame) not in running and is_wanted(frame.f_code, frame.f_globals):
            looks.append(_look(_Place(frame.f_code, frame.f_lasti, line, frame.f_globals), _of_ended(frame)))
    return looks


def _steps(step: Any) -> Iterator[Tuple[FrameType, int]]:
    for _ in range(_DEEP):
        if step is None:
            break
        yield step.tb_frame, step.tb_lineno
        step = step.tb_next


def _callers(frame: Any) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _of_ended(frame: FrameType) -> Dict[str, Any]:
    """Return the variables of a function that has ended: nothing writes them back any more."""
    return dict(frame.f_locals) if frame.f_code.co_flags & _FUNCTION else {}


def look_at_frame(frame: FrameType) -> FrameLook:
    """Return the variables of a frame of this thread that runs."""
    code = frame.f_code
    place = _Place(code, frame.f_lasti, frame.f_lineno, frame.f_globals)
    if not code.co_flags & _FUNCTION:
        return _look(place, {})
    if HAS_VIEW:
        return _look(place, _of_view(frame))
    return _look(place, _read_one(frame) if _can_read() else {})


def _look(place: _Place, variables: Dict[str, Any]) -> FrameLook:
    """Return the look at a function, or at a module's own code, whose variables are its globals."""
    is_module = place.code.co_name == "<module>" and not place.code.co_flags & _FUNCTION
    return FrameLook(place.code, place.line, {**place.space} if is_module else variables)


def _is_dying(place: _Place) -> bool:
    """Tell whether a frame may be giving up its variables: in Python 3.11 it is still there while their finalizers run."""
    return _DIES_IN_PLACE and place.instruction >= 0 and place.code.co_code[place.instruction] == _RETURNS


def _of_functions(chain: Callable[[], Iterator[Any]], places: Sequence[_Place], depths: Sequence[int]) -> Dict[int, Dict[str, Any]]:
    """Return the variables of the frames at these depths of a chain."""
    if not depths:
        return {}
    if HAS_VIEW:
        frames = list(itertools.islice(chain(), depths[-1] + 1))
        return {depth: _of_view(frames[depth]) for depth in depths if depth < len(frames) and frames[depth].f_code is places[depth].code}
    if not _can_read():
        return {}
    stood = [(place.code, place.instruction) for place in places]
    stands = map(operator.eq, map(list, (map(_PLACE, chain()),)), (stood,))
    chosen = [depth in depths for depth in range(depths[-1] + 1)]
    slots = _slots(itertools.compress(chain(), chosen), {depth: places[depth].code for depth in depths})
    read = undisturbed(map(_CALL, itertools.compress((functools.partial(list, slots),), stands)), True)
    return _by_frame(read[0]) if read else {}


def _of_view(frame: FrameType) -> Dict[str, Any]:
    try:
        return dict(frame.f_locals.items())
    except ours(KeyError, RuntimeError):  # The function has gone on.
        return {}


def _read_one(frame: FrameType) -> Dict[str, Any]:
    return _by_frame(undisturbed(_slots(iter((frame,)), {0: frame.f_code}), True)).get(0, {})


def _slots(frames: Iterator[Any], codes: Dict[int, CodeType]) -> Iterator[Tuple[Tuple[int, str], Any]]:
    """Yield the slots that have a value, with the key of the frame and the name: no other thread may run meanwhile, so all of it is C code."""
    from _ctypes import PyObj_FromPtr
    from ctypes import c_void_p

    names = {key: _names_of_slots(code) for key, code in codes.items()}
    arrays = [c_void_p * len(names[key]) for key in codes]
    labels = itertools.chain.from_iterable(zip(itertools.repeat(key), names[key]) for key in codes)
    from_address = type(c_void_p * 1).from_address
    slots = map(from_address, arrays, _addresses(frames))
    has_value, pointers = itertools.tee(itertools.chain.from_iterable(slots))
    values = map(PyObj_FromPtr, filter(None, pointers))
    return zip(itertools.compress(list(labels), has_value), values)


def _addresses(frames: Iterator[Any]) -> Iterator[int]:
    """Yield where the slots of each frame begin: from Python 3.11 on in what it points to, another place once the function has returned."""
    if not _HAS_INNER_FRAME:
        return map(operator.add, map(id, frames), itertools.repeat(FrameType.__basicsize__ - _WORD))
    from ctypes import c_void_p

    pointers = map(operator.add, map(id, frames), itertools.repeat(object.__basicsize__ + _WORD))
    value_of = operator.attrgetter("value")
    inner = map(value_of, map(c_void_p.from_address, pointers))
    return map(operator.add, inner, itertools.repeat(_BEFORE_SLOTS))


def _names_of_slots(code: CodeType) -> List[str]:
    """Return the names in the order of the slots; from Python 3.11 on an argument that is a cell has one slot, before it has two."""
    names = [*code.co_varnames, *code.co_cellvars, *code.co_freevars]
    return list(dict.fromkeys(names)) if _HAS_INNER_FRAME else names


def _by_frame(slots: Iterable[Tuple[Tuple[int, str], Any]]) -> Dict[int, Dict[str, Any]]:
    """Return the values by frame and name; the value of a cell is what it holds."""
    variables: Dict[int, Dict[str, Any]] = {}
    for (key, name), slot in slots:
        value = slot
        if type(slot) is _CELL:
            try:
                value = slot.cell_contents
            except ours(ValueError):  # It is empty.
                continue
        variables.setdefault(key, {})[name] = value
    return variables


def _cell_type() -> Any:
    kept = 0
    closure = (lambda: kept).__closure__
    return type(closure[0]) if closure else None


_CELL = _cell_type()


@functools.lru_cache(maxsize=1)
def _can_read() -> bool:
    """Try it on this very frame and on one inside it, whose variables are known: an argument, a variable, a cell, one without a value."""
    if not _HAS_KNOWN_PLACE:
        return False
    number, in_cell, unset = object(), object(), object()
    del unset

    def inner(first: Any, last: Any = 1) -> Tuple[Any, ...]:
        return first, last, in_cell, _read_one(sys._getframe())

    read = inner(number)[-1]
    own = _read_one(sys._getframe())
    is_own_read = own.get("number") is number and own.get("in_cell") is in_cell and "unset" not in own
    return is_own_read and list(read) == ["first", "last", "in_cell"] and read["first"] is number and read["in_cell"] is in_cell
