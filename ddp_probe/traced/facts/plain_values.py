"""Reads the plain values of local names in the job's frames: numbers, flags, lengths and shapes. None of the job's code runs for it.

Up to Python 3.12, `frame.f_locals` copies a function's variables into a dict that the frame keeps: it would hold tensors that the job lets go,
and a tracer written in Python writes it back into the variables. Decision 0055 says which frames are read nevertheless, and how.
"""

import enum
import itertools
import sys
from types import CodeType, FrameType, GetSetDescriptorType
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ddp_probe.shared import settings
from ddp_probe.shared.masks import MASK, secret_name
from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, framework, starts_a_child
from ddp_probe.shared.schema import FrameValues
from ddp_probe.traced.facts.call_site import BETWEEN, PROBE, main_thread_ident, module_of, site, within
from ddp_probe.traced.facts.describe import bases, class_contents, namespace, qualname, reader

_FRAMES, _NAMES, _DEEP = 8, 20, 10_000
_CHARACTERS, _ATTRIBUTES, _BITS = 100, 200, 128
_OPTIMIZED = 1  # CO_OPTIMIZED: a function, whose variables are not a dict.
_WRITES_THROUGH = sys.version_info >= (3, 13)  # PEP 667: f_locals is a view.
_NAMESPACE = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "stack", "f_locals"))
"""A function that uses one of these names may hold the dict that f_locals fills."""
_OF_A_TRACER = frozenset(("frame", "event", "arg"))
_TRACERS = ("bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy", "trace", "profile", "coverage", "hunter", "monkeytype")
_NUMPY = ("bool_", "int32", "int64", "float16", "float32", "float64")


def values_of_main_thread() -> List[FrameValues]:
    """Return the values in the job's frames of the main thread, as it stands."""
    if not settings.get(settings.VALUES):
        return []
    frame = sys._current_frames().get(main_thread_ident())
    still = _Still(frame)
    frames: List[FrameType] = []
    while frame is not None and len(frames) < _DEEP:
        frames.append(frame)
        frame = frame.f_back
    return _values(frames, still)


def values_of_traceback(step: Any) -> List[FrameValues]:
    """Return the values in the job's frames that an exception has left."""
    if not settings.get(settings.VALUES):
        return []
    frames: List[FrameType] = []
    lines: Dict[int, int] = {}
    while step is not None and len(frames) < _DEEP:
        frames.append(step.tb_frame)
        lines[id(step.tb_frame)] = step.tb_lineno
        step = step.tb_next
    return _values(frames[::-1], None, lines)


class _Still:
    """Tells whether the main thread has stayed at one instruction, as it does in a call that waits."""

    def __init__(self, frame: Optional[FrameType]) -> None:
        self._frame = frame
        self._instruction = -1 if frame is None else frame.f_lasti
        self._thread = main_thread_ident()

    def stands(self) -> bool:
        """Look again."""
        frame = self._frame
        return frame is not None and frame.f_lasti == self._instruction and sys._current_frames().get(self._thread) is frame


def _values(frames: List[FrameType], still: Optional[_Still], lines: Optional[Dict[int, int]] = None) -> List[FrameValues]:
    """Read frames, innermost first; the answer is outermost first, as stacks are."""
    if not _WRITES_THROUGH and _is_traced(frames):
        return []
    answer: List[FrameValues] = []
    for frame in frames:
        if len(answer) == _FRAMES:
            break
        if not _is_of_the_job(frame):
            continue
        values = _plain_values(frame, still)
        if values:
            line = (lines or {}).get(id(frame), frame.f_lineno)
            answer.append(FrameValues(site=site(frame.f_code, line), values=values))
    return answer[::-1]


def _is_of_the_job(frame: FrameType) -> bool:
    module = module_of(frame)
    if within(module, PROBE + BETWEEN) or framework(module.partition(".")[0]):
        return False
    return not foreign(frame.f_code.co_filename) and not starts_a_child(frame.f_code)


def _is_traced(frames: List[FrameType]) -> bool:
    """Tell whether a tracer or a profiler written in Python may be at work here: it writes f_locals back when it returns."""
    for frame in frames:
        code = frame.f_code
        if frame.f_trace is not None or within(module_of(frame), _TRACERS):
            return True
        if len(_OF_A_TRACER.intersection(code.co_varnames[: code.co_argcount])) > 1:
            return True
    return sys.gettrace() is not None or sys.getprofile() is not None


def _plain_values(frame: FrameType, still: Optional[_Still]) -> Dict[str, str]:
    values: Dict[str, str] = {}
    code = frame.f_code
    variables = _variables(frame, still)
    for name in _names(code):
        if len(values) == _NAMES:
            return values
        if name in variables:
            _add(values, name, variables[name])
    if code.co_varnames[:1] == ("self",) and "self" in variables:
        for name, value in _attributes(variables["self"]):
            if len(values) == _NAMES:
                break
            _add(values, "self." + name, value)
    return values


def _names(code: CodeType) -> Iterable[str]:
    """Return the names of a function, or those that a module's own code uses."""
    if code.co_flags & _OPTIMIZED:
        return dict.fromkeys(code.co_varnames + code.co_cellvars + code.co_freevars)
    return code.co_names


def _variables(frame: FrameType, still: Optional[_Still]) -> Dict[str, Any]:
    """Return the variables by name; empty if reading them could be noticed."""
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:
        return {**frame.f_globals} if code.co_name == "<module>" else {}
    if _WRITES_THROUGH:
        return {**frame.f_locals}
    if not _NAMESPACE.isdisjoint(code.co_names) or not (still is None or still.stands()):
        return {}
    filled = frame.f_locals
    variables = {**filled}
    if still is None or still.stands():  # A tracer that runs by now would write the empty dict back.
        filled.clear()  # Else the frame would hold what the job lets go, until the function returns.
    return variables


def _add(values: Dict[str, str], name: str, value: Any) -> None:
    try:
        text = _plain(value)
    except ours(Exception):
        return
    if text:
        values[name[:_CHARACTERS]] = MASK if secret_name(name) else text[:_CHARACTERS]


def _attributes(instance: Any) -> Iterator[Tuple[str, Any]]:
    """Yield an instance's own attributes; private containers, of which a module of torch has a dozen, are left out."""
    try:
        attributes = list(itertools.islice(_own_namespace(instance).items(), _ATTRIBUTES))
    except ours(RuntimeError):  # Another thread adds one.
        return
    for name, value in attributes:
        if type(name) is str and not (name.startswith("_") and _is_container(value)):
            yield name, value


def _is_container(value: Any) -> bool:
    kind = type(value)
    return kind is dict or kind is list or kind is tuple or kind is set or kind is frozenset


def _own_namespace(instance: Any) -> Dict[str, Any]:
    """Return an instance's __dict__, through the interpreter's descriptor: a property of that name is the job's code."""
    for kind in bases(type(instance)):
        descriptor = class_contents(kind).get("__dict__")
        if descriptor is not None:
            found = descriptor.__get__(instance) if type(descriptor) is GetSetDescriptorType else None
            return found if type(found) is dict else {}
    return {}


def _plain(value: Any) -> str:
    """Return the text of a plain value; empty if it is not one."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() <= _BITS else "int of %d bits" % value.bit_length()
    if _is_container(value):
        return "len %d" % len(value)
    if any(base is enum.Enum for base in bases(kind)):
        name = _own_namespace(value).get("_name_")
        return "%s.%s" % (qualname(kind), name) if type(name) is str else ""
    return _of_numpy(value, kind) or _shape_of_tensor(value, kind)


def _of_numpy(value: Any, kind: type) -> str:
    numpy = namespace("numpy")
    if not numpy:
        return ""
    if kind is numpy.get("ndarray"):
        return _shape(value.shape)
    if any(kind is numpy.get(name) for name in _NUMPY):
        return repr(value.item())
    return ""


def _shape_of_tensor(value: Any, kind: type) -> str:
    tensor = namespace("torch").get("Tensor")
    if tensor is None or not any(base is tensor for base in bases(kind)):
        return ""
    with namespace("torch._C")["DisableTorchFunction"]():  # Else a subclass's __torch_function__ runs.
        return _shape(reader(kind).key(value)[0])


def _shape(sizes: Any) -> str:
    return "shape %s" % [int(size) for size in sizes]
