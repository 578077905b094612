"""Applies edits of diagnose/change.py to lines of Python, one after the other; the result is None if one cannot be made exactly."""

import ast
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.diagnose import change
from ddp_probe.report import _imports

_CALLED: Dict[str, "re.Pattern[str]"] = {
    change.WRAP: re.compile(r"(^|\.)\w*(DistributedDataParallel|DDP)$"),
    change.LOAD: re.compile(r"(^|\.)load$"),
    change.SAVE: re.compile(r"(^|\.)save(_checkpoint|_file)?$"),
    change.GROUP: re.compile(r"(^|\.)init_process_group$"),
    change.SET_DEVICE: re.compile(r"(^|\.)set_device$"),
    change.RUNNER: re.compile(r"(^|\.)(\w*Runner|from_cfg|build)$"),
    change.INIT_DIST: re.compile(r"(^|\.)init_dist$"),
    change.MOVE: re.compile(r"(^|\.)(cuda|to)$"),
    change.LOAD_STATE: re.compile(r"(^|\.)load_state_dict$"),
    change.TRAINER: re.compile(r"(^|\.)Trainer$"),
    change.ACCELERATOR: re.compile(r"(^|\.)Accelerator$"),
}
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.JoinedStr)


class Own(NamedTuple):
    """A call in the job's own source: the lines, the call, and its statement."""

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
        own = isinstance(self.statement, ast.Expr) and self.statement.value is self.call
        last = self.lines[(self.statement.end_lineno or 0) - 1]
        return own and self.indent == self.lines[self.statement.lineno - 1][: self.statement.col_offset] and last.rstrip().endswith(")")


def applied(lines: List[str], edits: Sequence[change.InSource]) -> Optional[List[str]]:
    """Return the lines after all edits. They are applied from the last line to the first, so that no edit shifts another one's line."""
    changed: Optional[List[str]] = lines
    for edit in sorted(edits, key=_order):
        changed = _one(changed, edit) if changed is not None else None
    for module in dict.fromkeys(module for edit in edits for module in _modules(edit)):
        changed = _imports.added(changed, module) if changed is not None else None
    return changed if changed != lines else None


def _modules(edit: change.InSource) -> Tuple[str, ...]:
    if isinstance(edit, change.Import):
        return (edit.module,)
    return edit.imports if isinstance(edit, (change.Argument, change.Lines, change.Instead, change.Rewritten)) else ()


def _order(edit: change.InSource) -> Tuple[int, int]:
    line = -edit.site.line if not isinstance(edit, change.ConfigLine) and edit.site is not None else 0
    if isinstance(edit, change.Lines):
        return line, -1 if edit.after else 2
    return (1, 0) if isinstance(edit, (change.Key, change.Spelling)) else (line, 0)


def _one(lines: List[str], edit: change.InSource) -> Optional[List[str]]:
    if isinstance(edit, change.ConfigLine):
        return [*lines, edit.line]
    if isinstance(edit, change.Import):
        return lines
    tree = _parsed(lines)
    if tree is None:
        return None
    if isinstance(edit, change.Key):
        return _keyed(lines, tree, edit)
    if isinstance(edit, change.Spelling):
        return _spelt(lines, tree, edit)
    own = _call(lines, tree, edit)
    if own is None:
        return None
    if isinstance(edit, change.Argument):
        return _argument(own, tree, edit)
    if isinstance(edit, change.Lines):
        return _lines(own, edit)
    return _rewritten(own, edit) if isinstance(edit, change.Rewritten) else _instead(own, edit)


# --- finding the call


def _parsed(lines: List[str]) -> Optional[ast.Module]:
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _call(lines: List[str], tree: ast.Module, edit: change.InSource) -> Optional[Own]:
    number, called = edit.site.line if not isinstance(edit, change.ConfigLine) and edit.site is not None else 0, getattr(edit, "call", "")
    found: List[Own] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and _at_line(node, number):
            calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and _at_line(each, number)]
            found += [Own(lines, call, node) for call in calls if _meant(call, called)]
    if not found or (number == 0 and len(found) > 1):
        return None
    return found[-1] if called else found[0]


def _at_line(node: Any, number: int) -> bool:
    return number == 0 or node.lineno <= number <= (node.end_lineno or node.lineno)


def _meant(call: ast.Call, called: str) -> bool:
    return not called or (called in _CALLED and _CALLED[called].search(_name(call)) is not None)


def _name(call: ast.Call) -> str:
    """Return the dotted name that is called."""
    parts: List[str] = []
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


# --- positions: ast counts in bytes, the lines are text


def _at(lines: List[str], line: int, column: int) -> Tuple[int, int]:
    return line - 1, len(lines[line - 1].encode("utf-8")[:column].decode("utf-8", "replace"))


def _start(node: ast.AST) -> Tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]  # every expression has them


def _end(node: ast.AST) -> Tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]  # the same, from Python 3.8 on


def _text(lines: List[str], node: ast.AST) -> str:
    (first, left), (last, right) = _at(lines, *_start(node)), _at(lines, *_end(node))
    if first == last:
        return lines[first][left:right]
    return "\n".join([lines[first][left:], *lines[first + 1 : last], lines[last][:right]])


def _replaced(lines: List[str], node: ast.AST, text: str) -> List[str]:
    (first, left), (last, right) = _at(lines, *_start(node)), _at(lines, *_end(node))
    changed = lines[first][:left] + text + lines[last][right:]
    return [*lines[:first], *changed.split("\n"), *lines[last + 1 :]]


# --- the values of the names in an edit


def _names(own: Own) -> Dict[str, str]:
    given = [_text(own.lines, value) for value in own.call.args]
    given += ["%s=%s" % (item.arg, _text(own.lines, item.value)) for item in own.call.keywords if item.arg]
    values = [_operand(own.lines, value) for value in [*own.call.args, *(item.value for item in own.call.keywords)]]
    names = {"args": ", ".join(given)}
    names.update(dict(zip(("first", "second"), values)))
    if isinstance(own.call.func, ast.Attribute):
        names["on"] = _text(own.lines, own.call.func.value)
    return names


def _operand(lines: List[str], node: ast.expr) -> str:
    """Return an expression that can be used as an operand."""
    text = _text(lines, node)
    return text if isinstance(node, _SIMPLE) else "(%s)" % text


def _filled(code: str, names: Dict[str, str]) -> Optional[str]:
    text = change.fill(code, names)
    return None if "$" in text else text


def _device(own: Own, tree: ast.Module) -> Dict[str, str]:
    """Return an expression for the model's device: the job's own `device` if it is a torch.device, else one read from the model."""
    if any(_is_device(node, own) for scope in _scopes(tree, own) for node in scope):
        return {"device": "device"}
    model = own.call.args[0] if own.call.args else next((item.value for item in own.call.keywords if item.arg == "module"), None)
    return {"device": "next(%s.parameters()).device" % model.id} if isinstance(model, ast.Name) else {}


def _scopes(tree: ast.Module, own: Own) -> Iterator[List[ast.stmt]]:
    yield tree.body
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= own.call.lineno <= (node.end_lineno or 0):
            yield node.body


def _is_device(node: ast.stmt, own: Own) -> bool:
    if not isinstance(node, ast.Assign) or node.lineno >= own.statement.lineno:
        return False
    return any(isinstance(target, ast.Name) and target.id == "device" for target in node.targets) and "torch.device(" in _text(own.lines, node.value)


# --- the edits


def _argument(own: Own, tree: ast.Module, edit: change.Argument) -> Optional[List[str]]:
    given = _given(own.call, edit)
    if not edit.value:
        return _without(own, edit) if given is not None else own.lines
    if given is None and not edit.add:
        return own.lines
    names = {**_names(own), **(_device(own, tree) if "$device" in edit.value else {})}
    if given is not None:
        text = _filled(edit.replace or edit.value, {**names, "was": _operand(own.lines, given)})
        return _replaced(own.lines, given, text) if text is not None else None
    if not edit.name or "$was" in edit.value:
        return None
    text = _filled(edit.value, names)
    return _with(own, [*_arguments(own), (edit.name, text)]) if text is not None else None


def _given(call: ast.Call, edit: change.Argument) -> Optional[ast.expr]:
    if 0 <= edit.position < len(call.args):
        return call.args[edit.position]
    return next((item.value for item in call.keywords if edit.name and item.arg == edit.name), None)


def _arguments(own: Own) -> List[Tuple[str, str]]:
    """Return each argument's keyword, empty for none, and its source."""
    given = [("", _text(own.lines, value)) for value in own.call.args]
    return given + [(item.arg or "**", _text(own.lines, item.value)) for item in own.call.keywords]


def _with(own: Own, arguments: List[Tuple[str, str]]) -> List[str]:
    """Return the lines with new arguments; keywords go before a final `**`."""
    ordered = [each for each in arguments if each[0] != "**"] + [each for each in arguments if each[0] == "**"]
    words = [value if not name else "**" + value if name == "**" else "%s=%s" % (name, value) for name, value in ordered]
    return _replaced(own.lines, own.call, "%s(%s)" % (_text(own.lines, own.call.func), ", ".join(words)))


def _without(own: Own, edit: change.Argument) -> List[str]:
    if 0 <= edit.position < len(own.call.args):
        return _replaced(own.lines, own.call.args[edit.position], "None")
    return _with(own, [(name, value) for name, value in _arguments(own) if name != edit.name])


def _lines(own: Own, edit: change.Lines) -> Optional[List[str]]:
    names = _names(own)
    if own.call.args and not isinstance(own.call.args[0], ast.Name) and any("$first" in line for line in edit.lines):
        return None
    filled = [_filled(line, names) for line in edit.lines]
    if None in filled:
        return None
    inner = "    " if edit.condition else ""
    block = [own.indent + "if %s:" % edit.condition] * bool(edit.condition) + [own.indent + inner + str(line) for line in filled]
    at = (own.statement.end_lineno or own.statement.lineno) if edit.after else own.statement.lineno - 1
    return [*own.lines[:at], *block, *own.lines[at:]]


def _rewritten(own: Own, edit: change.Rewritten) -> Optional[List[str]]:
    bare = bool(edit.empty) and not own.call.args and not own.call.keywords
    text = _filled(edit.empty if bare else edit.text, _names(own))
    return _replaced(own.lines, own.call, text) if text is not None else None


def _instead(own: Own, edit: change.Instead) -> Optional[List[str]]:
    if not own.alone:
        return None
    first, last = own.statement.lineno - 1, own.statement.end_lineno or own.statement.lineno
    names = _names(own)
    otherwise = [_filled(line, names) for line in edit.otherwise]
    if None in otherwise:
        return None
    block = [own.indent + "if %s:" % edit.condition, *["    " + line for line in own.lines[first:last]]]
    block += [own.indent + "else:"] * bool(otherwise) + [own.indent + "    " + str(line) for line in otherwise]
    return [*own.lines[:first], *block, *own.lines[last:]]


def _spelt(lines: List[str], tree: ast.Module, edit: change.Spelling) -> Optional[List[str]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node).endswith("add_argument") and node.args]
    found = [call.args[0] for call in calls if getattr(call.args[0], "value", "") == edit.has]
    return _replaced(lines, found[0], "%s, %r" % (_text(lines, found[0]), edit.more)) if len(found) == 1 else None


def _keyed(lines: List[str], tree: ast.Module, edit: change.Key) -> Optional[List[str]]:
    """Add a key to the dictionary, which must be the only one of its kind in the file."""
    found = [node for node in ast.walk(tree) if _of_type(node, edit.of)]
    if len(found) != 1:
        return None
    node = found[0]
    text = _text(lines, node)
    if isinstance(node, ast.Dict):
        return _replaced(lines, node, "%s, %r: %s}" % (text[:-1].rstrip().rstrip(","), edit.key, edit.value))
    return _replaced(lines, node, "%s, %s=%s)" % (text[:-1].rstrip().rstrip(","), edit.key, edit.value))


def _of_type(node: ast.AST, of: str) -> bool:
    if isinstance(node, ast.Dict):
        pairs = [(key.value, value) for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        pairs = [(item.arg, item.value) for item in node.keywords]
    else:
        return False
    return any(key == "type" and (getattr(value, "value", "") == of or getattr(value, "id", "") == of) for key, value in pairs)
