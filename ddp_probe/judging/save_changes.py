"""Writes the change of a save at the job's own call, whatever its shape, or in words that name what makes the call."""

import ast
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.judging import change, job_calls
from ddp_probe.judging.job_calls import CallInSource, text_of
from ddp_probe.shared.schema import Site
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import place

# Calls that give the same path when they are made again.
_STEADY = frozenset(
    "str int len min max sorted format join fspath abspath realpath expanduser dirname basename Path PurePath joinpath with_suffix with_name"
    " absolute resolve lower upper strip replace get as_posix".split()
)
_PARTIAL = "partial"
_MADE_BEFORE = "os.makedirs(os.path.dirname(%s) or '.', exist_ok=True)"


class _Save(NamedTuple):
    """A save in the job's source."""

    site: Site
    tree: ast.Module
    in_source: CallInSource
    path: Optional[ast.expr]  # None: *args or **kwargs hold it.
    keyword: str  # What the save calls its path.

    def text(self, node: ast.AST) -> str:
        """Return the source of a node."""
        return text_of(self.in_source.lines, node)

    def swap(self, node: ast.AST, now: str, imports: Sequence[str] = ("os",)) -> change.Swapped:
        """Return the edit that writes something in place of a node."""
        row, column = job_calls.position(self.in_source.lines, *job_calls.start(node))
        return change.Swapped(Site(self.site.file, row + 1), column, self.text(node), now, tuple(imports))

    def before(self, *lines: str, imports: Sequence[str] = ("os",)) -> change.Added:
        """Return the edit that adds lines before the statement."""
        site = Site(self.site.file, self.in_source.statement.lineno)
        return change.Added(site, lines, self.in_source.indent, imports=tuple(imports))

    def after(self, *lines: str) -> change.Added:
        """Return the edit that adds lines after the statement."""
        return _after(self.site, self.in_source.statement, self.in_source.indent, lines)

    @property
    def is_statement(self) -> bool:
        """Tell whether the call is a whole statement, if not alone on its lines: the body of an `if` in one line."""
        return isinstance(self.in_source.statement, ast.Expr) and self.in_source.statement.value is self.in_source.call

    @property
    def is_value(self) -> bool:
        """Tell whether the call is what a statement returns or assigns, and the statement is alone on its lines."""
        statement: Any = self.in_source.statement
        kinds = (ast.Return, ast.Assign, ast.AnnAssign)
        return isinstance(statement, kinds) and statement.value is self.in_source.call and self.in_source.own_lines

    def unused(self, name: str) -> str:
        """Return a name that the program does not use."""
        return job_calls.unused(self.tree, name)


def whole(site: Site, keyword: str, *, opened: bool, others: bool) -> change.Change:
    """Let a save write to a temporary name, and rename the file when it is whole.

    opened: the job has opened the file itself. others: the same line also saves what is not a path.
    """
    if job_calls.source(site) is None and not opened and not others:
        return _as_it_is(site, keyword)
    save, edits = _find(site, keyword), None
    if save is not None and opened:
        edits = _opened(save)
    elif save is not None and not others:
        edits = _named(save)
    return edits or [_in_words(site, opened)]


def with_folder(site: Site) -> change.Change:
    """Make the folder of a file before the file is saved."""
    if job_calls.source(site) is None:
        return [change.Lines(site, (_MADE_BEFORE % "$second",), ("os",), call=change.SAVE)]
    save = _find(site, "f")
    edits = _with_folder(save) if save is not None else None
    return edits or [
        say(
            "Before the save {made}, make the folder of the file that it writes: os.makedirs(folder, exist_ok=True).",
            made=_maker(site),
        )
    ]


def _find(site: Site, keyword: str) -> Optional[_Save]:
    source = job_calls.source(site)
    if source is None:
        return None
    lines, tree = source
    partials = _partials(tree)
    in_source = job_calls.call_of(lines, tree, site.line, lambda call: job_calls.dotted_name(call) in partials)
    bound: Optional[ast.Call] = None
    if in_source is not None:
        bound = partials[job_calls.dotted_name(in_source.call)]
    else:
        in_source = job_calls.call_in_source(lines, tree, change.Argument(site, change.SAVE, keyword, ""))
    if in_source is None:
        return None
    path, is_known = _path(in_source.call, bound, keyword)
    return _Save(site, tree, in_source, path, keyword) if is_known else None


def _partials(tree: ast.Module) -> Dict[str, ast.Call]:
    """Return the partials of a save that a program keeps under a name."""
    others, partials = job_calls.other_names(tree), {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Call):
            continue
        maker = job_calls.dotted_name(node.value)
        if others.get(maker, maker).rpartition(".")[2] != _PARTIAL or not node.value.args:
            continue
        if job_calls.means(job_calls.dotted(node.value.args[0]), change.SAVE, others):
            partials[job_calls.dotted(node.targets[0])] = node.value
    return partials


def _path(call: ast.Call, bound: Optional[ast.Call], keyword: str) -> Tuple[Optional[ast.expr], bool]:
    """Return the argument that is the path, and whether this call gives it: a partial may have it already."""
    position = 1
    if bound is not None:
        if any(item.arg in (keyword, None) for item in bound.keywords) or _starred(bound.args):
            return None, False
        position -= len(bound.args) - 1
        if position < 0:
            return None, False
    named = next((item.value for item in call.keywords if item.arg == keyword), None)
    if named is not None:
        return named, True
    if len(call.args) > position and not _starred(call.args[: position + 1]):
        return call.args[position], True
    hidden = _starred(call.args) or any(item.arg is None for item in call.keywords)
    return None, hidden and bound is None


def _starred(nodes: Sequence[ast.expr]) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


def _is_steady(node: ast.expr) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(inner, ast.Call) and _last_name(inner.func) not in _STEADY:
            return False
    return True


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _as_it_is(site: Site, keyword: str) -> change.Change:
    """Change the plain call torch.save(state, path)."""
    beside = change.Argument(site, change.SAVE, keyword, "str($was) + '.tmp'", 1, was="path")
    return [beside, change.Lines(site, (_replaced("$second"),), ("os",), after=True, call=change.SAVE)]


def _replaced(path: str, operand: str = "") -> str:
    return "os.replace(str(%s) + '.tmp', %s)" % (path, operand or path)


def _named(save: _Save) -> Optional[List[change.Edit]]:
    in_source = save.in_source
    if save.path is None:
        return _hidden(save)
    path, is_steady, name = save.text(save.path), _is_steady(save.path), save.unused("saved_as")
    replaced = _replaced(path, job_calls.operand(in_source.lines, save.path)) if is_steady else _replaced(name)
    lead, used = ([], path) if is_steady else (["%s = %s" % (name, path)], name)
    if in_source.alone:
        before = [save.before(*lead)] if lead else []
        return [*before, save.swap(save.path, "str(%s) + '.tmp'" % used), save.after(replaced)]
    if save.is_statement:
        return [save.swap(in_source.call, "; ".join([*lead, _with_path(save, used), replaced]))]
    if not is_steady:
        return None
    return [save.swap(in_source.call, "(%s or %s)" % (_with_path(save, path), replaced))]  # A save returns None.


def _with_path(save: _Save, path: str) -> str:
    """Return the call with a temporary name."""
    assert save.path is not None
    lines, call = save.in_source.lines, save.in_source.call
    begin, end = job_calls.position(lines, *job_calls.start(call)), job_calls.position(lines, *job_calls.end(save.path))
    at = job_calls.position(lines, *job_calls.start(save.path))
    last = job_calls.position(lines, *job_calls.end(call))
    return _between(lines, begin, at) + "str(%s) + '.tmp'" % path + _between(lines, end, last)


def _between(lines: List[str], begin: Tuple[int, int], end: Tuple[int, int]) -> str:
    if begin[0] == end[0]:
        return lines[begin[0]][begin[1] : end[1]]
    return "\n".join([lines[begin[0]][begin[1] :], *lines[begin[0] + 1 : end[0]], lines[end[0]][: end[1]]])


class _Bound(NamedTuple):
    """What *args and **kwargs hold, by parameter name, in a variable."""

    name: str
    line: str  # The statement that fills it.
    path: str


def _bound(save: _Save) -> _Bound:
    call, name = save.in_source.call, save.unused("given")
    given = [save.text(value) for value in call.args]
    given += [("%s=%s" % (item.arg, save.text(item.value))) if item.arg else "**%s" % save.text(item.value) for item in call.keywords]
    line = "%s = inspect.signature(%s).bind(%s).arguments" % (name, save.text(call.func), ", ".join(given))
    return _Bound(name, line, "%s['%s']" % (name, save.keyword))


def _hidden(save: _Save) -> Optional[List[change.Edit]]:
    """Take the path out of *args and **kwargs, in the body of the helper that passes them on."""
    bound, imports = _bound(save), ("inspect", "os")
    call = "%s(**{**%s, '%s': str(%s) + '.tmp'})" % (save.text(save.in_source.call.func), bound.name, save.keyword, bound.path)
    replaced = _replaced(bound.path)
    if save.in_source.alone:
        return [save.before(bound.line, imports=imports), save.swap(save.in_source.call, call), save.after(replaced)]
    if save.is_statement:
        return [save.swap(save.in_source.call, "%s; %s; %s" % (bound.line, call, replaced), imports)]
    if save.is_value:
        return [save.before(bound.line, imports=imports), save.swap(save.in_source.call, "%s or %s" % (call, replaced))]
    return None


def _opened(save: _Save) -> Optional[List[change.Edit]]:
    """Open a temporary name, and rename the file after the `with` that closes it."""
    name = save.path.id if isinstance(save.path, ast.Name) else ""
    for block in ast.walk(save.tree):
        if not isinstance(block, ast.With) or not block.lineno <= save.in_source.call.lineno <= (block.end_lineno or 0):
            continue
        for item in block.items:
            if not isinstance(item.optional_vars, ast.Name) or item.optional_vars.id != name or not isinstance(item.context_expr, ast.Call):
                continue
            return _reopened(save, block, item.context_expr)
    return None


def _reopened(save: _Save, block: ast.With, call: ast.Call) -> Optional[List[change.Edit]]:
    function, mode = job_calls.dotted_name(call), [save.text(value) for value in (*call.args, *(item.value for item in call.keywords))]
    path: Optional[ast.expr] = None
    if function in ("open", "io.open") and call.args:
        path = call.args[0]
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "open" and mode[:1] in (["'wb'"], ['"wb"']):
        path = call.func.value  # A path of pathlib.
    lines = save.in_source.lines
    indent = lines[block.lineno - 1][: len(lines[block.lineno - 1]) - len(lines[block.lineno - 1].lstrip())]
    is_written = any(text in ("'wb'", '"wb"') for text in mode)
    if path is None or not _is_steady(path) or not is_written or len(indent) != block.col_offset or any(map(_starred, (call.args,))):
        return None
    text = save.text(path)
    if call.args and path is call.args[0]:
        opened = save.swap(path, "str(%s) + '.tmp'" % text)
    else:
        opened = save.swap(call, "open(str(%s) + '.tmp', %s)" % (text, ", ".join(mode)))
    return [opened, _after(save.site, block, indent, (_replaced(text, job_calls.operand(lines, path)),))]


def _after(site: Site, statement: ast.stmt, indent: str, lines: Sequence[str]) -> change.Added:
    last = statement.end_lineno or statement.lineno
    return change.Added(Site(site.file, last), tuple(lines), indent, after=True, imports=("os",))


def _in_words(site: Site, opened: bool) -> Text:
    if opened:
        return say(
            "The job opens the file of the save {made} itself: open path + '.tmp' there, and call os.replace(path + '.tmp', path) once it is closed.",
            made=_maker(site),
        )
    return say(
        "Let the save {made} write to path + '.tmp', where path is the file that it is given, and call os.replace(path + '.tmp', path) after it.",
        made=_maker(site),
    )


def _maker(site: Site) -> Text:
    """Return the function that makes the call, and where."""
    function = site.function.rpartition(".")[2]
    if function.startswith("<") or not function:
        return say("at {where}", where=place(site))
    return say("in {function} at {where}", function=function, where=place(site))


def _with_folder(save: _Save) -> Optional[List[change.Edit]]:
    in_source = save.in_source
    if save.path is None:
        bound = _bound(save)
        lines = (bound.line, _MADE_BEFORE % bound.path)
        if in_source.alone or save.is_value:
            return [save.before(*lines, imports=("inspect", "os"))]
        call = "; ".join((*lines, save.text(in_source.call)))
        return [save.swap(in_source.call, call, ("inspect", "os"))] if save.is_statement else None
    path, name = save.text(save.path), save.unused("saved_as")
    if not _is_steady(save.path):
        if not in_source.alone:
            return None
        return [save.before("%s = %s" % (name, path), _MADE_BEFORE % name), save.swap(save.path, name)]
    if in_source.alone:
        return [save.before(_MADE_BEFORE % path)]
    made, call = _MADE_BEFORE % path, save.text(in_source.call)
    return [save.swap(in_source.call, "%s; %s" % (made, call) if save.is_statement else "(%s or %s)" % (made, call))]
