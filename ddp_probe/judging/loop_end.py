"""Finds out from the stacks of two ranks where they part, and with the job's source that one has left a loop in which the other still is.

Both ranks pass through the same functions from the program's first line on. At the first line at which they differ, one is inside a `for` of that
function and the other behind it. If nothing but the end of what it goes over ends the loop, and each pass of it comes by the line where the other
rank waits, the rank behind it has had fewer passes.
"""

import ast
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.judging.ledgers import Standing, came_after
from ddp_probe.judging.waiting import waited
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.standing.arms import tree
from ddp_probe.wording.text import Text, say

_Loop = Union[ast.For, ast.AsyncFor]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom)
_EXCHANGES = Expression(r"[/\\]torch[/\\](?:distributed|nn[/\\]parallel)[/\\]")
_CHOOSES = (ast.If, ast.Try, ast.While, ast.IfExp)


class LoopEnd(NamedTuple):
    """The line of the loop, and the line after it at which the rank that left it is."""

    loop: schema.Site
    behind: schema.Site


def exchanged_unequally(stuck: Sequence[Standing], others: Sequence[Standing]) -> int:
    """Return the number of the backward pass of DDP that some ranks do not finish although the others have begun as many; else 0."""
    passes = {standing.times("backward") for standing in (*stuck, *others)}
    wait = all(standing.in_backward and standing.process.count(schema.Wrap) for standing in stuck)
    return passes.pop() if stuck and others and len(passes) == 1 and wait else 0


def unequal(stuck: Sequence[int], others: Sequence[int]) -> Tuple[Sequence[int], Text]:
    """Return who is to blame for an exchange of gradients that only some ranks make, the fewer or both sides, and say so."""
    blame = sorted((stuck, others), key=len)[0] if len(stuck) != len(others) else sorted([*stuck, *others])
    how = say("one side has exchanged gradients once more than the other, as with no_sync() in another step, or a backward pass that bypasses DDP")
    return blame, how


UNEQUAL = say("Let all ranks call no_sync() in the same steps, and make each backward pass on what the wrapped model returned.")


def loop_end(inside: Standing, outside: Standing) -> Optional[LoopEnd]:
    """Return the loop in which one rank still is and which the other has left; None if unknown."""
    parted = parting_lines(inside, outside)
    if parted is None:
        return None
    site, other = parted
    source = tree(site.file)
    loops = [] if source is None else [loop for loop in _loops(source) if _holds(loop, site.line) and _is_behind(source, loop, other.line)]
    if not loops or not _is_plain(loops[-1], site.line):
        return None
    return LoopEnd(schema.Site(site.file, loops[-1].lineno, site.function), other)


def parting_lines(one: Standing, other: Standing) -> Optional[Tuple[schema.Site, schema.Site]]:
    """Return the two lines of one function at which the ways of two ranks part; None if their stacks do not show it."""
    return _parted(frames(one), frames(other))


def waits_in_torch(standing: Standing) -> bool:
    """Tell whether a rank that is in no recorded call does wait for others: DDP's own calls are made in C++, below its forward."""
    return any(_EXCHANGES.search(frame.file) for frame in frames(standing)[-1:])


def frames(standing: Standing) -> Sequence[schema.Site]:
    """Return the stack of the main thread where the rank stands: by the exception that ended the wait, or by what its watcher wrote since then."""
    for failure in standing.process.failures:
        if failure.fatal and failure.frames and (waited(failure) or failure.consequence == PEER_GONE):
            return failure.frames
    process = standing.process
    looks = [call for call in process.calls(schema.HangSuspected) if not came_after(process, call.when - process.offset)]
    if not looks or looks[-1].when < standing.ledger.moved + process.offset:
        return ()
    return main_frames(looks[-1].begin.threads)


def _parted(sites: Sequence[schema.Site], other: Sequence[schema.Site]) -> Optional[Tuple[schema.Site, schema.Site]]:
    """Return the first frames that differ, if they are of one function."""
    for first, second in zip(sites, other):
        if (first.file, first.function) != (second.file, second.function):
            return None
        if first.line != second.line:
            return first, second
    return None


def _loops(source: ast.AST) -> List[_Loop]:
    """Return the loops of a file, an inner one after those around it."""
    loops = [node for node in ast.walk(source) if isinstance(node, (ast.For, ast.AsyncFor))]
    return sorted(loops, key=lambda loop: loop.lineno)


def _last(node: ast.AST) -> int:
    return max(getattr(part, "lineno", 0) for part in ast.walk(node))


def _holds(loop: _Loop, line: int) -> bool:
    return loop.body[0].lineno <= line <= max(_last(part) for part in loop.body)


def _is_behind(source: ast.AST, loop: _Loop, line: int) -> bool:
    """Tell whether a line follows a loop in the same list of statements: a rank there has been through the loop."""
    for block in _blocks(source):
        if loop in block:
            after = block[block.index(loop) + 1 :]
            return bool(after) and after[0].lineno <= line <= max(_last(part) for part in after)
    return False


def _blocks(source: ast.AST) -> Iterator[List[ast.stmt]]:
    for node in ast.walk(source):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _is_plain(loop: _Loop, line: int) -> bool:
    """Tell whether each pass reaches a line, and nothing leaves the loop before its end."""
    nodes = list(_without_functions(loop.body))
    if any(isinstance(node, _LEAVES) for node in nodes):
        return False
    return not any(isinstance(node, _CHOOSES) and node.lineno <= line <= _last(node) for node in nodes)


def _without_functions(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield what is inside these nodes, without functions that are defined there."""
    for node in nodes:
        if not isinstance(node, _FUNCTIONS):
            yield node
            yield from _without_functions(list(ast.iter_child_nodes(node)))
