"""A call in the job's source, as an edit means it, and the code that stands for the names in the edit. The source is parsed, never run."""

import ast
from itertools import chain
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.judging import change
from ddp_probe.reading import job_source
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.schema import Site

_CALLED: Dict[str, "Expression[str]"] = {
    change.WRAP: Expression(r"(^|\.)\w*(DistributedDataParallel|DDP)$"),
    change.LOAD: Expression(r"(^|\.)load$"),
    change.SAVE: Expression(r"(^|\.)save(_checkpoint|_file)?$"),
    change.GROUP: Expression(r"(^|\.)init_process_group$"),
    change.SET_DEVICE: Expression(r"(^|\.)set_device$"),
    change.RUNNER: Expression(r"(^|\.)(\w*Runner|from_cfg|build)$"),
    change.INIT_DIST: Expression(r"(^|\.)init_dist$"),
    change.MOVE: Expression(r"(^|\.)cuda$"),
    change.LOAD_STATE: Expression(r"(^|\.)load_state_dict$"),
    change.TRAINER: Expression(r"(^|\.)Trainer$"),
    change.ACCELERATOR: Expression(r"(^|\.)Accelerator$"),
}
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.JoinedStr)


_SECOND = ("f", "filename")  # The second argument of a save, whatever precedes it.


def names(edit: change.InSource) -> Optional[change.Names]:
    """Return what the names in an edit stand for in the job's call; None if that is not at hand."""
    if not isinstance(edit, change.NAMED) or edit.site is None:
        return None
    found = source(edit.site)
    lines, tree = found or ([], ast.Module([], []))
    in_source = call_in_source(lines, tree, edit) if found is not None else None
    if in_source is None:
        return None
    known = {**names_of(in_source), **device_of(in_source, tree)}
    was = given(in_source.call, edit) if isinstance(edit, change.Argument) else None
    if was is None and isinstance(edit, change.Argument):
        known.update(_stars(in_source, edit))
    if was is not None:
        known.update({"was": operand(lines, was)}, **{} if was in in_source.call.args else {"keyword": ""})
    return {name: " ".join(text.split()) for name, text in known.items() if len(text) <= change.LONGEST}


def source(site: Site) -> Optional[Tuple[List[str], ast.Module]]:
    """Return the lines and the tree of the file of a place; None if it is not at hand, or not Python."""
    job_file = job_source.read(site.file) if site.file.endswith(".py") else None
    lines = job_file.text.splitlines() if job_file is not None else []
    tree = parsed(lines) if job_file is not None else None
    return (lines, tree) if tree is not None else None


def unused(tree: ast.AST, name: str) -> str:
    """Return a name that a program does not use: this one, or one like it."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    while name in used:
        name += "_"
    return name


class CallInSource(NamedTuple):
    """A call in the job's source: the lines, the call, and its statement."""

    lines: List[str]
    call: ast.Call
    statement: ast.stmt

    @property
    def indent(self) -> str:
        """Return the statement's indentation."""
        line = self.lines[self.statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    @property
    def alone(self) -> bool:
        """Return whether the call is a whole statement, alone on its lines."""
        return isinstance(self.statement, ast.Expr) and self.statement.value is self.call and self.own_lines

    @property
    def own_lines(self) -> bool:
        """Return whether the statement is alone on its lines."""
        row, right = position(self.lines, *end(self.statement))
        after = self.lines[row][right:].strip()
        return self.indent == self.lines[self.statement.lineno - 1][: self.statement.col_offset] and (not after or after.startswith("#"))


def parsed(lines: List[str]) -> Optional[ast.Module]:
    """Return the tree of a source; None if it is not Python."""
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def call_in_source(lines: List[str], tree: ast.Module, edit: change.InSource) -> Optional[CallInSource]:
    """Return the call that an edit means; None if it is not there, or not alone of its kind."""
    number, called = edit.site.line if not isinstance(edit, change.ConfigLine) and edit.site is not None else 0, getattr(edit, "call", "")
    others = other_names(tree)
    return call_of(lines, tree, number, lambda call: means(dotted_name(call), called, others), any_=not called)


def call_of(lines: List[str], tree: ast.Module, number: int, is_meant: Callable[[ast.Call], bool], any_: bool = False) -> Optional[CallInSource]:
    """Return the call at a line that is meant; None if it is not there, or not alone of its kind, unless any will do."""
    found: List[CallInSource] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and _at_line(node, number):
            calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and _at_line(each, number)]
            found += [CallInSource(lines, call, node) for call in calls if is_meant(call)]
    if not found or (number == 0 and len(found) > 1):
        return None
    if any_:
        return found[0]
    inner = found[-1].call
    return found[-1] if all(start(each.call) <= start(inner) and end(inner) <= end(each.call) for each in found) else None


def other_names(tree: ast.Module) -> Dict[str, str]:
    """Return the names under which a program has imported something, or has given it a second name, each with its original name."""
    found: Dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.update({each.asname: each.name for each in node.names if each.asname})
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = dotted(node.value)
            found.update({node.targets[0].id: name} if name else {})
    return found


def _at_line(node: Any, number: int) -> bool:
    return number == 0 or node.lineno <= number <= (node.end_lineno or node.lineno)


def means(name: str, called: str, others: Dict[str, str]) -> bool:
    """Tell whether a dotted name is the call that an edit means."""
    return not called or (called in _CALLED and _CALLED[called].search(others.get(name, name)) is not None)


def dotted_name(call: ast.Call) -> str:
    """Return the dotted name that is called."""
    return dotted(call.func)


def dotted(node: ast.expr) -> str:
    """Return a name with the names that it is an attribute of."""
    parts: List[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def position(lines: List[str], line: int, column: int) -> Tuple[int, int]:
    """Return a position of ast, which counts in bytes, as the row and the column of the text."""
    return line - 1, len(lines[line - 1].encode("utf-8")[:column].decode("utf-8", "replace"))


def start(node: ast.AST) -> Tuple[int, int]:
    """Return where a node begins, as ast counts."""
    return node.lineno, node.col_offset  # type: ignore[attr-defined]  # every expression has them


def end(node: ast.AST) -> Tuple[int, int]:
    """Return where a node ends, as ast counts."""
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]  # the same, from Python 3.8 on


def text_of(lines: List[str], node: ast.AST) -> str:
    """Return the source of a node."""
    (first, left), (last, right) = position(lines, *start(node)), position(lines, *end(node))
    if first == last:
        return lines[first][left:right]
    return "\n".join([lines[first][left:], *lines[first + 1 : last], lines[last][:right]])


def names_of(in_source: CallInSource) -> Dict[str, str]:
    """Return what the names in an edit stand for in a call."""
    given = [text_of(in_source.lines, value) for value in in_source.call.args]
    given += [_keyword(in_source.lines, item) for item in in_source.call.keywords]
    names = {"args": ", ".join(given)}
    values = _positional(in_source.call)
    names.update(zip(("first", "second"), (operand(in_source.lines, value) for value in values)))
    if isinstance(in_source.call.func, ast.Attribute):
        names["on"] = text_of(in_source.lines, in_source.call.func.value)
    return names


def _keyword(lines: List[str], item: ast.keyword) -> str:
    text = text_of(lines, item.value)
    return "%s=%s" % (item.arg, text) if item.arg else "**%s" % text


def _positional(call: ast.Call) -> List[ast.expr]:
    """Return the first and the second argument, as far as they are known: what *args and **kwargs hold is not, nor what follows."""
    if any(isinstance(value, ast.Starred) for value in call.args):
        return call.args[: next(number for number, value in enumerate(call.args) if isinstance(value, ast.Starred))]
    keywords = [item for item in call.keywords if item.arg]
    values = [*call.args, *(item.value for item in keywords if item.arg not in _SECOND)]
    values[1:1] = [item.value for item in keywords if item.arg in _SECOND]
    return values


def _stars(in_source: CallInSource, edit: change.Argument) -> Dict[str, str]:
    """Return what may hold an argument: `hidden`; and the dictionary that it can be put into, if nothing else may hold it: `into`."""
    lines, call = in_source.lines, in_source.call
    if edit.replace:
        return {}
    lists = [text_of(lines, value) for value in call.args if isinstance(value, ast.Starred)] if edit.position >= 0 else []
    maps = [text_of(lines, item.value) for item in call.keywords if item.arg is None]
    hidden = [*lists, *("**%s" % text for text in maps)]
    names = {"hidden": " and ".join(hidden)} if hidden else {}
    if len(maps) == 1 and not lists and edit.name:
        names["into"] = maps[0]
    return names


def operand(lines: List[str], node: ast.expr) -> str:
    """Return an expression that can be used as an operand."""
    text = text_of(lines, node)
    return text if isinstance(node, _SIMPLE) else "(%s)" % text


def filled(code: str, names: Dict[str, str]) -> Optional[str]:
    """Return the code of an edit with its names filled in; None if one is not known."""
    text = change.fill(code, names)
    return None if "$" in text else text


def device_of(in_source: CallInSource, tree: ast.Module) -> Dict[str, str]:
    """Return an expression for the model's device: the job's `device` if it is a torch.device, else one read from the model."""
    if any(_is_device(node, in_source) for node in chain.from_iterable(_scopes(tree, in_source))):
        return {"device": "device"}
    model = in_source.call.args[0] if in_source.call.args else next((item.value for item in in_source.call.keywords if item.arg == "module"), None)
    is_name = isinstance(model, (ast.Name, ast.Attribute))
    return {"device": "next(%s.parameters()).device" % text_of(in_source.lines, model)} if model is not None and is_name else {}


def is_hidden(call: ast.Call, edit: change.Argument) -> bool:
    """Return whether *args may hold the argument that an edit is about."""
    return edit.position >= 0 and any(isinstance(value, ast.Starred) for value in call.args)


def given(call: ast.Call, edit: change.Argument) -> Optional[ast.expr]:
    """Return the argument that an edit is about, if the call has it."""
    position = edit.position
    if edit.call == change.LOAD_STATE and isinstance(call.func, ast.Name) and len(call.args) > 1:
        position += 1  # A function's first argument is the model.
    if 0 <= position < len(call.args) and not any(isinstance(value, ast.Starred) for value in call.args[: position + 1]):
        return call.args[position]
    return next((item.value for item in call.keywords if edit.name and item.arg == edit.name), None)


def _scopes(tree: ast.Module, in_source: CallInSource) -> Iterator[List[ast.stmt]]:
    yield tree.body
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= in_source.call.lineno <= (node.end_lineno or 0):
            yield node.body


def _is_device(node: ast.stmt, in_source: CallInSource) -> bool:
    if not isinstance(node, ast.Assign) or node.lineno >= in_source.statement.lineno:
        return False
    return any(isinstance(target, ast.Name) and target.id == "device" for target in node.targets) and "torch.device(" in text_of(
        in_source.lines, node.value
    )
