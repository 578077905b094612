"""Whether two lines of the job belong to one decision, by its source: the arms of one `if`, or a call that some make on the way to the next one."""

import ast
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading import job_source
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared.mask_forms import Expression

_RANK = Expression(r"(?:^|_|\b)ranks?(?:\b|_)|is_main|is_master|main_process", re.IGNORECASE)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WITH = (ast.With, ast.AsyncWith)


class Nesting(NamedTuple):
    """One statement on the way from a function to a line: the statement around it, the suite in that, and its place in the suite."""

    owner: ast.AST
    suite: str
    statements: List[ast.stmt]
    place: int

    @property
    def statement(self) -> ast.stmt:
        """Return the statement itself."""
        return self.statements[self.place]


class Decision(NamedTuple):
    """The `if` that holds a call, while all ranks come to the call after it."""

    line: int
    on_rank: bool


class Arms:
    """The source of a job, as it was at one time. Of a file that has changed since, only lines that still show the call are believed."""

    def __init__(self, when: float) -> None:
        self._when = when
        self._trees: Dict[str, Optional[ast.AST]] = {}
        self._later: Dict[str, List[str]] = {}

    def know(self, op: str, *sites: LedgerSite) -> bool:
        """Tell whether the source of the lines that call this operation is here."""
        for site in sites:
            if self._tree(site.file) is None:
                return False
            lines = self._later.get(site.file)
            if lines is not None and not (0 < site.line <= len(lines) and op in lines[site.line - 1]):
                return False
        return True

    def are_arms(self, one: LedgerSite, other: LedgerSite) -> bool:
        """Tell whether a rank makes one of two calls or the other: the arms of an `if`, a body and its handler, a loop in which ranks take turns."""
        tree = self._tree(one.file)
        if tree is None or one.file != other.file:
            return False
        ways = [_ways(tree, one.line), _ways(tree, other.line)]
        if any(_counts_ranks(step.owner) for way in (*ways[0], *ways[1]) for step in way):
            return True
        if _in_one_function(ways[0][0], ways[1][0]):
            return _apart(ways[0][0], ways[1][0])
        pairs = [(first, second) for first in ways[0] for second in ways[1] if _in_one_function(first, second)]
        return bool(pairs) and all(_apart(first, second) for first, second in pairs)

    def statement(self, site: LedgerSite) -> str:
        """Return the statement at a line, equal for equal ones at other lines; an empty string if it is not known."""
        tree = self._tree(site.file)
        way = _way(tree, site.line) if tree is not None else []
        return ast.dump(way[-1].statement) if way and site.file not in self._later else ""

    def passed_by(self, made: LedgerSite, usual: LedgerSite) -> Optional[Decision]:
        """Return the `if` that holds the first call, if whoever makes it comes to the second one next, and the others go there directly."""
        tree = self._tree(made.file)
        if tree is None or made.file != usual.file:
            return None
        made_way, usual_way = _way(tree, made.line), _way(tree, usual.line)
        if _in_one_function(made_way, usual_way):
            return _passed_by(made_way, usual_way)
        branches = [step.statement for step in made_way if isinstance(step.statement, ast.If)]
        if not branches or any(not isinstance(step.owner, (ast.If, *_WITH, *_FUNCTIONS)) for step in made_way):
            return None
        called = [way for way in _ways(tree, made.line)[1:] if _in_one_function(way, usual_way)]
        if not called or not all(_comes_next(way, usual_way) for way in called):
            return None
        return _decision(branches[0])

    def _tree(self, file: str) -> Optional[ast.AST]:
        if file not in self._trees:
            self._trees[file] = tree(file)
            job_file = job_source.read(file) if self._trees[file] is not None else None
            if job_file is not None and job_file.changed > self._when:
                self._later[file] = job_file.text.splitlines()
        return self._trees[file]


def tree(file: str) -> Optional[ast.AST]:
    """Return the syntax tree of a file of the job, if it is here."""
    job_file = job_source.read(file) if file else None
    try:
        return ast.parse(job_file.text) if job_file is not None else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def rank_branch(site: Optional[LedgerSite]) -> Optional[int]:
    """Return the line of the `if` that only some ranks take and that holds a call, or all calls of its function; None if there is none."""
    source = tree(site.file) if site is not None else None
    if source is None or site is None:
        return None
    own, *callers = _ways(source, site.line)
    if _rank_if(own) is not None:
        return _rank_if(own)
    lines = [_rank_if(way) for way in callers]
    return lines[0] if lines and None not in lines else None


_Way = List[Nesting]


def _passed_by(made: _Way, usual: _Way) -> Optional[Decision]:
    fork = _fork(made, usual)
    if fork is None or not _comes_next(made, usual):
        return None
    branch = fork[0].statement
    inside = made[made.index(fork[0]) + 1 :]
    if not isinstance(branch, ast.If) or any(not isinstance(step.owner, (ast.If, *_WITH)) for step in inside):
        return None
    return _decision(branch)


def _comes_next(made: _Way, usual: _Way) -> bool:
    """Tell whether whoever passes the first line comes to the second one in any case."""
    fork = _fork(made, usual)
    if fork is None or fork[0].statements is not fork[1].statements or fork[0].place >= fork[1].place:
        return False
    after = usual[usual.index(fork[1]) + 1 :]
    return all(isinstance(step.owner, _WITH) for step in after) and not _may_leave(fork[0], fork[1])


def _decision(branch: ast.stmt) -> Decision:
    return Decision(branch.lineno, _is_on_rank(branch))


def _ways(tree: ast.AST, line: int) -> List[_Way]:
    """Return the way to a line from its function inwards, and the ways to where that function is called."""
    ways = [_way(tree, line)]
    name = _function(tree, line)
    if name:
        ways += [_way(tree, call.lineno) for call in _calls(tree, name)]
    return ways


def _way(tree: ast.AST, line: int) -> _Way:
    way: _Way = []
    node: ast.AST = tree
    while True:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            way = []
        step = _nesting(node, line)
        if step is None:
            return way
        way.append(step)
        node = step.statement


def _nesting(node: ast.AST, line: int) -> Optional[Nesting]:
    for suite, statements in _suites(node):
        for place, statement in enumerate(statements):
            last = getattr(statement, "end_lineno", None) or statement.lineno
            if statement.lineno <= line <= last:
                return Nesting(node, suite, statements, place)
    return None


def _suites(node: ast.AST) -> Iterator[Tuple[str, List[ast.stmt]]]:
    for suite in ("body", "orelse", "finalbody"):
        statements = getattr(node, suite, None)
        if isinstance(statements, list):
            yield suite, statements
    for handler in getattr(node, "handlers", ()):
        yield "handler", handler.body


def _function(tree: ast.AST, line: int) -> str:
    """Return the innermost function that holds a line."""
    way = _way(tree, line)
    return getattr(way[0].owner, "name", "") if way and isinstance(way[0].owner, _FUNCTIONS) else ""


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
            yield node


def _in_one_function(one: _Way, other: _Way) -> bool:
    return bool(one) and bool(other) and one[0].owner is other[0].owner


def _fork(one: Sequence[Nesting], other: Sequence[Nesting]) -> Optional[Tuple[Nesting, Nesting]]:
    """Return the steps at which two ways of one function part."""
    for first, second in zip(one, other):
        if first.owner is not second.owner:
            return None
        if first.statement is not second.statement:
            return first, second
    return None


def _apart(one: _Way, other: _Way) -> bool:
    """Tell whether no rank passes both lines on one way through the function."""
    fork = _fork(one, other)
    if fork is None:
        return False
    first, second = fork
    if first.statements is not second.statements:
        return _is_either(first.owner, first.suite, second.suite)
    if first.place > second.place:
        first, second, one, other = second, first, other, one
    return _leaves(one, first) or (_is_on_rank(first.statement) and _is_on_rank(second.statement))


def _is_either(owner: ast.AST, *suites: str) -> bool:
    """Tell whether a statement runs one of two of its suites or the other: an `if`, or a `try` and what handles its exception."""
    if isinstance(owner, ast.Try):
        return "handler" in suites and "finalbody" not in suites
    return isinstance(owner, ast.If)


def _leaves(way: _Way, fork: Nesting) -> bool:
    """Tell whether a suite on this way ends by return, raise, continue or break, so that what follows is not reached."""
    return any(isinstance(step.statements[-1], _LEAVES) for step in way[way.index(fork) + 1 :])


def _may_leave(first: Nesting, second: Nesting) -> bool:
    """Tell whether a way can end between two statements of one suite, the first included."""
    between = ast.Module(first.statements[first.place : second.place], [])
    return any(isinstance(node, _LEAVES) for node in ast.walk(between))


def _rank_if(way: Sequence[Nesting]) -> Optional[int]:
    """Return the innermost `if` on a rank around a line, in its body or in its else."""
    lines = [step.statement.lineno for step, inner in zip(way, way[1:]) if inner.owner is step.statement and _asks_rank(step.statement)]
    return max(lines, default=None)


def _asks_rank(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and _is_on_rank(statement)


def _is_on_rank(node: ast.AST) -> bool:
    """Tell whether this is an `if` or a loop that asks for the rank."""
    test = getattr(node, "test", None) or getattr(node, "iter", None)
    return test is not None and _RANK.search(ast.dump(test)) is not None


def _counts_ranks(node: ast.AST) -> bool:
    """Tell whether this is a loop that runs as often as the rank says: ranks take turns."""
    return isinstance(node, _LOOPS) and _is_on_rank(node)
