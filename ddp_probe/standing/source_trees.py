"""The job's source as syntax trees: which function holds a line, and what the lines say."""

import ast
from typing import Callable, Dict, Iterator, List, Optional, Set, Union

from ddp_probe.reading import job_source
from ddp_probe.reading.job_source import JobFile
from ddp_probe.reading.whole_ledger import LedgerSite

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module]
_NESTED = (*FUNCTIONS, ast.Lambda, ast.ClassDef)


class SourceModule:
    """One file of the job: its tree, its lines, its functions."""

    def __init__(self, job_file: JobFile, tree: ast.Module) -> None:
        self.tree = tree
        self.changed = job_file.changed
        self._text = job_file.text
        self._lines: List[str] = []
        self._functions: Optional[List[Function]] = None
        self._imported: Optional[Set[str]] = None
        self._by_name: Optional[Dict[str, List[Function]]] = None

    @property
    def lines(self) -> List[str]:
        """Return the lines of the file."""
        if not self._lines:
            self._lines = self._text.split("\n")
        return self._lines

    def functions(self) -> List[Function]:
        """Return every function and lambda of the file."""
        if self._functions is None:
            self._functions = [node for node in ast.walk(self.tree) if isinstance(node, (*FUNCTIONS, ast.Lambda))]
        return self._functions

    def holding(self, line: int, is_lambda: bool = False) -> Optional[Function]:
        """Return the innermost function that holds a line, the module if there is none; None if the file has no such line."""
        if not 0 < line <= len(self.lines):
            return None
        wanted = (ast.Lambda,) if is_lambda else FUNCTIONS
        holders = [node for node in self.functions() if isinstance(node, wanted) and _holds(node, line)]
        if not holders:
            return None if is_lambda else self.tree
        return max(holders, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def named(self, name: str) -> Optional[Function]:
        """Return the function of this name, if there is only one."""
        if self._by_name is None:
            self._by_name = {}
            for node in self.functions():
                self._by_name.setdefault(getattr(node, "name", ""), []).append(node)
        named = self._by_name.get(name, ())
        return named[0] if len(named) == 1 else None

    def imported(self) -> Set[str]:
        """Return the names that imports of the file give to modules and to what is in them."""
        if self._imported is None:
            self._imported = set()
            for node in ast.walk(self.tree):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    self._imported.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        return self._imported

    def calls(self, name: str) -> Iterator[ast.Call]:
        """Yield each call of a function or method of this name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and called(node) == name:
                yield node

    def said(self, part: ast.AST) -> str:
        """Return the source of an expression in one line."""
        first, last = getattr(part, "lineno", 0), getattr(part, "end_lineno", 0) or 0
        if not first or not last:
            return ""
        lines = [line.encode() for line in self.lines[first - 1 : last]]
        lines[-1] = lines[-1][: getattr(part, "end_col_offset", 0)]
        lines[0] = lines[0][getattr(part, "col_offset", 0) :]
        return " ".join(b" ".join(lines).decode(errors="replace").split())


class SourceTrees:
    """The files of a job as they were at one time."""

    def __init__(self, when: float, read: Callable[[str], Optional[JobFile]] = job_source.read) -> None:
        self._when = when
        self._read = read
        self._modules: Dict[str, Optional[SourceModule]] = {}
        self._functions: Dict[LedgerSite, Optional[Function]] = {}

    def module(self, file: str) -> Optional[SourceModule]:
        """Return a file of the job, changed or not; None if it is not here or is not Python."""
        if file not in self._modules:
            self._modules[file] = _parsed(self._read(file) if file else None)
        return self._modules[file]

    def unchanged(self, file: str) -> Optional[SourceModule]:
        """Return a file of the job that is as it ran."""
        module = self.module(file)
        return module if module is not None and module.changed <= self._when else None

    def know(self, op: str, *sites: LedgerSite) -> bool:
        """Tell whether the lines that call this operation are here. Of a file that has changed, lines that still show the call are believed."""
        for site in sites:
            module = self.module(site.file)
            if module is None:
                return False
            has_line = 0 < site.line <= len(module.lines)
            if module.changed > self._when and not (has_line and op in module.lines[site.line - 1]):
                return False
        return True

    def function(self, site: LedgerSite) -> Optional[Function]:
        """Return the function in which a frame was; None if the source is not here, has changed or has another function there."""
        if site not in self._functions:
            self._functions[site] = self._function(site)
        return self._functions[site]

    def _function(self, site: LedgerSite) -> Optional[Function]:
        module = self.unchanged(site.file)
        if module is None:
            return None
        name = site.function.rpartition(".")[2]
        function = module.holding(site.line, name == "<lambda>")
        return function if function is not None and function_name(function) in (name, "") else None


def function_name(function: Function) -> str:
    """Return the name that a frame of this function has."""
    if isinstance(function, ast.Module):
        return "<module>"
    return "<lambda>" if isinstance(function, ast.Lambda) else function.name


def called(call: ast.Call) -> str:
    """Return the last part of the name that a call calls; empty if it is called by no name."""
    return str(getattr(call.func, "id", "") or getattr(call.func, "attr", ""))


def own_nodes(roots: Iterator[ast.AST]) -> Iterator[ast.AST]:
    """Yield what is inside these nodes, without the insides of functions and classes that are defined there."""
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _NESTED):
            waiting.extend(ast.iter_child_nodes(node))


def is_generator(function: ast.AST) -> bool:
    """Tell whether a call of a function makes a generator."""
    return isinstance(function, FUNCTIONS) and any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes(iter(function.body)))


def _holds(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _parsed(job_file: Optional[JobFile]) -> Optional[SourceModule]:
    if job_file is None:
        return None
    try:
        return SourceModule(job_file, ast.parse(job_file.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
