"""The item at which a loop around a call is, as a number of 16 bits.

Ranks that go over the same names in another order make the same calls; this number tells them apart. The loop is found
in the bytecode of its function, once for each way to a call. Its variable is read at each call; nothing of it is kept.
"""

import binascii
import dis
import sys
from enum import Enum
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ddp_probe.shared import ledger_schema

_FRAMES = 16  # The loop is in one of this many frames from the call outwards.
_HEADER = 24  # Instructions before a loop's first one that are looked at, for what it goes over.
_MOST_CHARACTERS = 1000
_COPIES_VARIABLES = sys.version_info < (3, 13)  # f_locals of a function is a copy that the frame keeps, not a view.
_OPTIMIZED = 1  # The flag of code whose variables have places of their own, not a dictionary.
_COUNTING = frozenset(("range", "enumerate", "trange", "count"))
_SEES_VARIABLES = frozenset("vars dir eval exec".split())
_HAS_VARIABLES = frozenset(("locals", "f_locals"))
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_FOR_ITER = dis.opmap["FOR_ITER"]
_ONE_TARGET = frozenset(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"))
_NO_TARGET = frozenset(("EXTENDED_ARG", "NOP", "CACHE"))
_bases = type.__dict__["__mro__"].__get__  # A metaclass may answer for them.
_own = object.__getattribute__


class Loop(NamedTuple):
    """A loop around a call: how many frames outwards it is, and the variable that holds its item."""

    frames: int
    variable: str
    counts: bool  # It counts its turns; their numbers say nothing.


class _Span(NamedTuple):
    """The instructions of a loop, and the variables that it gives its item to."""

    first: int
    end: int
    variables: List[str]
    counts: bool


class LoopFinder:
    """Finds the loops around calls; the bytecode of a function is looked at once."""

    def __init__(self) -> None:
        self._spans: Dict[int, List[_Span]] = {}  # By id(code).
        self._kept: List[CodeType] = []  # So that no other code gets its id.

    def around(self, start: FrameType, is_the_jobs: Callable[[CodeType], bool]) -> Optional[Loop]:
        """Return the innermost loop of the job's frames that is at an item with a checksum now."""
        frame: Optional[FrameType] = start
        for outwards in range(_FRAMES):
            if frame is None:
                break
            if is_the_jobs(frame.f_code):
                for span in self._spans_of(frame.f_code):
                    if span.first <= frame.f_lasti < span.end:
                        for name in span.variables:
                            loop = Loop(outwards, name, span.counts)
                            if item_at(loop, start):
                                return loop
            frame = frame.f_back
        return None

    def _spans_of(self, code: CodeType) -> List[_Span]:
        spans = self._spans.get(id(code))
        if spans is None:
            self._kept.append(code)
            spans = self._spans[id(code)] = _spans_in(code)
        return spans


def item_at(loop: Loop, start: FrameType) -> int:
    """Return the checksum of the item at which a loop is; 0 if it has none."""
    if _COPIES_VARIABLES and (sys.gettrace() is not None or sys.getprofile() is not None):
        return 0  # A call that a debugger makes at a breakpoint: the interpreter then writes the copy back into the variables.
    frame: Any = start
    for _ in range(loop.frames):
        frame = frame.f_back
    variables = frame.f_locals
    value = variables.get(loop.variable)
    if _COPIES_VARIABLES and frame.f_code.co_flags & _OPTIMIZED:
        variables.clear()  # Else the frame keeps it, and with it the job's tensors.
    return 0 if loop.counts and type(value) is int else checksum(value)


def checksum(value: Any) -> int:
    """Return what stands for a text, a small number or a member of an enumeration; 0 for anything else.

    None of the job's code runs.
    """
    kind = type(value)
    if kind is str:
        text = value[:_MOST_CHARACTERS].encode("utf-8", "surrogatepass")
    elif kind is int:
        return value + 1 if 0 <= value < ledger_schema.ITEM_NUMBERS else 0
    elif kind is bytes:
        text = value[:_MOST_CHARACTERS]
    elif Enum in _bases(kind):
        name = _own(value, "__dict__").get("_name_")
        text = name.encode("utf-8", "surrogatepass") if type(name) is str else b""
    else:
        return 0
    return binascii.crc32(text) & (ledger_schema.ITEM_IS_NAME - 1) | ledger_schema.ITEM_IS_NAME


def _spans_in(code: CodeType) -> List[_Span]:
    """Return the loops of a function, the last first; none if it looks at its variables itself, as locals() does."""
    if _FOR_ITER not in code.co_code[::2] or _HAS_VARIABLES.intersection(code.co_names):
        return []
    instructions = list(dis.get_instructions(code))
    spans: List[_Span] = []
    for place, instruction in enumerate(instructions):
        if instruction.opname in _LOADS and instruction.argval in _SEES_VARIABLES:
            return []
        if instruction.opname == "FOR_ITER":
            variables, counts = _targets(instructions, place), _counts(instructions, place)
            spans.insert(0, _Span(instruction.offset, instruction.argval, variables, counts))
    return spans


def _counts(instructions: List[dis.Instruction], place: int) -> bool:
    """Tell whether a loop goes over range() or enumerate(), by the instructions before it."""
    for instruction in reversed(instructions[max(0, place - _HEADER) : place]):
        if instruction.opname.startswith(("STORE", "POP", "JUMP", "FOR_ITER", "RETURN")):
            break
        if instruction.opname in _LOADS and instruction.argval in _COUNTING:
            return True
    return False


def _targets(instructions: List[dis.Instruction], place: int) -> List[str]:
    """Return the variables that a loop gives its item to; those behind an attribute or an index are not known."""
    wanted = 1
    variables: List[str] = []
    for instruction in instructions[place + 1 :]:
        name = instruction.opname
        if name == "UNPACK_SEQUENCE":
            wanted += (instruction.arg or 0) - 1
        elif name in _ONE_TARGET:
            wanted -= 1
            variables.append(instruction.argval)
        elif name == "STORE_FAST_STORE_FAST":  # Python 3.13.
            wanted -= 2
            variables += instruction.argval
        elif name == "STORE_FAST_LOAD_FAST":
            wanted -= 1
            variables.append(instruction.argval[0])
        elif name not in _NO_TARGET:
            break
        if wanted <= 0:
            break
    return variables
