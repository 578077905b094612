"""Which arm of its line a call stands in: a conditional expression has both in one line.

Ranks that take other arms of one line make their calls at the same line. The arms are found in the bytecode:
a jump under a condition begins a new one. A line without such a jump is known by its bytes. The instructions
of a function are read once, when a line of it that has one is first met. A `finally` is compiled once for
each way into it: each copy is counted by itself, so that all have the same numbers.
"""

import dis
from types import CodeType
from typing import Dict, List, NamedTuple, Tuple

from ddp_probe.shared.ours import ours

_CODES = 10_000  # Functions that are kept: a program that compiles in a loop has no end of them.
_NAMES = ("POP_JUMP_", "JUMP_IF_")
_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])
_CONDITIONAL = frozenset([code for name, code in dis.opmap.items() if name.startswith(_NAMES)])


class _Run(NamedTuple):
    """The instructions of one line in a row, and those at which its further arms begin."""

    first: int
    end: int
    arms: List[int]


class LineArms:
    """Knows the lines with several arms of each function that it has been asked about."""

    def __init__(self) -> None:
        self._runs: Dict[int, List[_Run]] = {}  # By id(code).
        self._kept: List[CodeType] = []  # So that no other code gets its id.

    def number(self, code: CodeType, instruction: int) -> int:
        """Return the number of the arm that holds an instruction, from 1 on; 0 if its line has no arms."""
        runs = self._runs.get(id(code))
        if runs is None:
            try:
                runs = _runs_in(code) if _is_conditional(code, instruction) else None
            except RecursionError:
                raise
            except ours(Exception):  # Bytecode that a program has made, and dis cannot read.
                runs = []
            if runs is None:
                return 0
            if len(self._kept) >= _CODES:
                self._runs.clear()
                self._kept.clear()
            self._kept.append(code)
            self._runs[id(code)] = runs
        for run in runs:
            if run.first <= instruction < run.end:
                return 1 + len([begins for begins in run.arms if begins <= instruction])
        return 0


def _is_conditional(code: CodeType, instruction: int) -> bool:
    """Tell whether the line that holds an instruction jumps under a condition."""
    first, end = 0, len(code.co_code)
    for offset, _ in dis.findlinestarts(code):
        if offset > instruction:
            end = offset
            break
        first = offset
    return not _CONDITIONAL.isdisjoint(code.co_code[first:end:2])


def _runs_in(code: CodeType) -> List[_Run]:
    jumps: List[Tuple[int, int]] = []
    begins = {first for first, _ in dis.findlinestarts(code)}
    for step in dis.get_instructions(code):
        if step.opcode in _CONDITIONAL:
            jumps.append((step.offset, step.argval))
        elif step.opname == "PUSH_EXC_INFO":  # From Python 3.11 on, a handler begins with it.
            begins.add(step.offset)
        elif step.opname.startswith("SETUP_") and step.opcode in _JUMPS:  # Up to 3.10 this names the handler.
            begins.add(step.argval)
    firsts = sorted(begins)
    runs: List[_Run] = []
    for first, end in zip(firsts, [*firsts[1:], len(code.co_code)]):
        arms = {target for offset, target in jumps if first <= offset < target < end}
        if arms:
            runs.append(_Run(first, end, sorted(arms)))
    return runs
