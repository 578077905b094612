"""The permanent change, as a diff of the job's source if it is available. A remedy only replaces it for a while."""

import ast
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ddp_probe.judging import change, job_calls
from ddp_probe.judging.rule import Finding
from ddp_probe.reading import job_source


def added(lines: List[str], module: str) -> Optional[List[str]]:
    """Return the lines with `import module` added; unchanged if it is already imported, None if its name is taken."""
    tree = ast.parse("\n".join(lines))
    root = module.partition(".")[0]
    taken = False
    for node in tree.body:
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.asname is None and (name.name == module or (root == "torch" and name.name.partition(".")[0] == root)):
                    return lines  # `import torch` brings torch.distributed and torch.nn as well.
                taken = taken or name.asname == root
        elif isinstance(node, ast.ImportFrom):
            taken = taken or any((name.asname or name.name) == root for name in node.names)
    if taken:
        return None
    at = _first_import(lines, tree)
    return [*lines[:at], "import " + module, *lines[at:]]


def _first_import(lines: List[str], tree: ast.Module) -> int:
    """Return the index of the first import except from __future__, else the index after the lines that must come first."""
    last = 0
    for number, node in enumerate(tree.body):
        docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            return node.lineno - 1 if isinstance(node, (ast.Import, ast.ImportFrom)) else last or _comments(lines)
        last = node.end_lineno or node.lineno
    return last


def _comments(lines: List[str]) -> int:
    count = 0
    while count < len(lines) and lines[count].startswith("#"):
        count += 1
    return count


# Applies edits of judging/change.py to lines of Python, one after the other; the result is None if one cannot be made exactly.


def applied(lines: List[str], edits: Sequence[change.InSource]) -> Optional[List[str]]:
    """Return the lines after all edits. They are applied from the last line to the first, so that no edit shifts the line of another."""
    changed: Optional[List[str]] = lines
    for edit in sorted(edits, key=_order):
        changed = _with_edit(changed, edit) if changed is not None else None
    for module in dict.fromkeys(module for edit in edits for module in _modules(edit)):
        changed = added(changed, module) if changed is not None else None
    if changed is None or changed == lines or (job_calls.parsed(changed) is None and job_calls.parsed(lines) is not None):
        return None
    return changed


def _modules(edit: change.InSource) -> Tuple[str, ...]:
    if isinstance(edit, change.Import):
        return (edit.module,)
    return edit.imports if isinstance(edit, (*change.NAMED, *change.EXACT)) else ()


def _order(edit: change.InSource) -> Tuple[int, int]:
    line = -edit.site.line if not isinstance(edit, change.ConfigLine) and edit.site is not None else 0
    if isinstance(edit, (change.Lines, change.Added)):
        return line, -1 if edit.after else 2
    return (1, 0) if isinstance(edit, (change.Key, change.Spelling)) else (line, 0)


def _with_edit(lines: List[str], edit: change.InSource) -> Optional[List[str]]:
    if isinstance(edit, change.ConfigLine):
        return [*lines, edit.line]
    if isinstance(edit, change.Import):
        return lines
    if isinstance(edit, change.EXACT):
        return _exact(lines, edit)
    tree = job_calls.parsed(lines)
    if tree is None:
        return None
    if isinstance(edit, change.Key):
        return _keyed(lines, tree, edit)
    if isinstance(edit, change.Spelling):
        return _spelt(lines, tree, edit)
    in_source = job_calls.call_in_source(lines, tree, edit)
    if in_source is None:
        return None
    if isinstance(edit, change.Argument):
        return _argument(in_source, tree, edit)
    if isinstance(edit, change.Lines):
        return _lines(in_source, edit)
    return _rewritten(in_source, edit) if isinstance(edit, change.Rewritten) else _instead(in_source, edit)


def _replaced(lines: List[str], node: ast.AST, text: str) -> List[str]:
    (first, left), (last, right) = job_calls.position(lines, *job_calls.start(node)), job_calls.position(lines, *job_calls.end(node))
    changed = lines[first][:left] + text + lines[last][right:]
    return [*lines[:first], *changed.split("\n"), *lines[last + 1 :]]


def _exact(lines: List[str], edit: Union[change.Swapped, change.Added]) -> Optional[List[str]]:
    row = edit.site.line - 1 if edit.site is not None else -1
    if not 0 <= row < len(lines):
        return None
    if isinstance(edit, change.Added):
        at = row + 1 if edit.after else row
        return [*lines[:at], *(edit.indent + line for line in edit.lines), *lines[at:]]
    flat = "\n".join(lines)
    at = sum(len(line) + 1 for line in lines[:row]) + edit.column
    return _cut(flat, at, at + len(edit.was), edit.now) if flat.startswith(edit.was, at) else None


def _argument(in_source: job_calls.CallInSource, tree: ast.Module, edit: change.Argument) -> Optional[List[str]]:
    given = job_calls.given(in_source.call, edit)
    if not edit.value:
        return _without(in_source, edit) if given is not None else in_source.lines
    if given is None and not edit.add:
        return in_source.lines
    names = {**job_calls.names_of(in_source), **(job_calls.device_of(in_source, tree) if "$device" in edit.value else {})}
    if given is not None:
        text = job_calls.filled(edit.replace or edit.value, {**names, "was": job_calls.operand(in_source.lines, given)})
        return _replaced(in_source.lines, given, text) if text is not None else None
    if not edit.name or "$was" in edit.value or job_calls.is_hidden(in_source.call, edit):
        return None
    text = job_calls.filled(edit.value, names)
    return _with(in_source, edit.name, text, into=not edit.replace) if text is not None else None


def _with(in_source: job_calls.CallInSource, name: str, value: str, into: bool = False) -> List[str]:
    """Return the lines with one more keyword; it goes before a final `**` or, as that may hold it already, into it."""
    spans, text = _spans(in_source), "%s=%s" % (name, value)
    star = next((span for span in spans if span.name == "**"), None)
    if star is None:
        return _appended(in_source.lines, in_source.call, spans[-1] if spans else None, text)
    flat = "\n".join(in_source.lines)
    if not into:
        margin = _margin(flat, star)
        return _cut(flat, star.start, star.start, text + (",\n" + margin if not margin.strip() else ", "))
    held = re.sub(r"\A\*\*\s*", "", flat[star.start : star.end])
    return _cut(flat, star.start, star.end, change.merged(held, name, value))


def _without(in_source: job_calls.CallInSource, edit: change.Argument) -> List[str]:
    if 0 <= edit.position < len(in_source.call.args):
        return _replaced(in_source.lines, in_source.call.args[edit.position], "None")
    flat, spans = "\n".join(in_source.lines), _spans(in_source)
    number = next(number for number, span in enumerate(spans) if span.name == edit.name)
    start, end = spans[number].start, spans[number].end
    if number + 1 < len(spans):
        return _cut(flat, start, spans[number + 1].start, "")
    left = flat[:start].rstrip()
    return _cut(flat, len(left.rstrip(",")) if number else start, end, "")


class _Span(NamedTuple):
    """The part of the text that is an argument, with its keyword and the brackets around its value."""

    name: str  # Its keyword; empty if it has none.
    start: int
    end: int


def _spans(in_source: job_calls.CallInSource) -> List[_Span]:
    """Return the parts of the text that are the arguments of a call, in their order. Python 3.8 does not know where a keyword begins."""
    values = [("", value) for value in in_source.call.args] + [(item.arg or "**", item.value) for item in in_source.call.keywords]
    return sorted((_span(in_source.lines, name, value) for name, value in values), key=lambda span: span.start)


def _span(lines: List[str], name: str, value: ast.expr) -> _Span:
    flat, start, end = "\n".join(lines), _offset(lines, *job_calls.start(value)), _offset(lines, *job_calls.end(value))
    lead = re.search((r"\*\*" if name == "**" else r"\b%s\s*=" % name if name else r"") + r"\s*(?P<brackets>[(\s]*)\Z", flat[:start])
    if lead is None or not name:
        return _Span(name, start, end)
    closing = re.match(r"(?:\s*\)){%d}" % lead["brackets"].count("("), flat[end:])
    return _Span(name, lead.start(), end + (closing.end() if closing is not None else 0))


def _offset(lines: List[str], line: int, column: int) -> int:
    """Return the place of a position in the joined lines."""
    row, left = job_calls.position(lines, line, column)
    return sum(len(line) + 1 for line in lines[:row]) + left


def _margin(flat: str, span: _Span) -> str:
    """Return what precedes an item in its line: blanks, if the item is on a separate line."""
    return flat[flat.rfind("\n", 0, span.start) + 1 : span.start]


def _cut(flat: str, start: int, end: int, text: str) -> List[str]:
    return (flat[:start] + text + flat[end:]).split("\n")


def _appended(lines: List[str], node: ast.AST, last: Optional[_Span], text: str) -> List[str]:
    """Return the lines with one more item in a call or a dictionary, on a separate line if the last item is on one."""
    flat, close = "\n".join(lines), _offset(lines, *job_calls.end(node)) - 1
    if last is None:
        return _cut(flat, close, close, text)
    margin, tail = _margin(flat, last), flat[last.end : close]
    if margin.strip():
        return _cut(flat, last.end, last.end, ", " + text)
    if "#" not in tail:
        return _cut(flat, last.end, last.end, ",\n" + margin + text)
    comma = "," in re.sub("#.*", "", tail)  # A comment stays with the item that it is about.
    row = flat.rfind("\n", 0, close) + 1
    return _cut(flat, last.end, row, ("" if comma else ",") + flat[last.end : row] + margin + text + ("," if comma else "") + "\n")


def _lines(in_source: job_calls.CallInSource, edit: change.Lines) -> Optional[List[str]]:
    names = job_calls.names_of(in_source)
    if in_source.call.args and not isinstance(in_source.call.args[0], ast.Name) and any("$first" in line for line in edit.lines):
        return None
    filled = [job_calls.filled(line, names) for line in edit.lines]
    if None in filled:
        return None
    inner = "    " if edit.condition else ""
    block = [in_source.indent + "if %s:" % edit.condition] * bool(edit.condition) + [in_source.indent + inner + str(line) for line in filled]
    at = (in_source.statement.end_lineno or in_source.statement.lineno) if edit.after else in_source.statement.lineno - 1
    return [*in_source.lines[:at], *block, *in_source.lines[at:]]


def _rewritten(in_source: job_calls.CallInSource, edit: change.Rewritten) -> Optional[List[str]]:
    bare = bool(edit.empty) and not in_source.call.args and not in_source.call.keywords
    text = job_calls.filled(edit.empty if bare else edit.text, job_calls.names_of(in_source))
    return _replaced(in_source.lines, in_source.call, text) if text is not None else None


def _instead(in_source: job_calls.CallInSource, edit: change.Instead) -> Optional[List[str]]:
    if not in_source.alone:
        return None
    first, last = in_source.statement.lineno - 1, in_source.statement.end_lineno or in_source.statement.lineno
    names = job_calls.names_of(in_source)
    otherwise = [job_calls.filled(line, names) for line in edit.otherwise]
    if None in otherwise:
        return None
    block = [in_source.indent + "if %s:" % edit.condition, *["    " + line for line in in_source.lines[first:last]]]
    block += [in_source.indent + "else:"] * bool(otherwise) + [in_source.indent + "    " + str(line) for line in otherwise]
    return [*in_source.lines[:first], *block, *in_source.lines[last:]]


def _spelt(lines: List[str], tree: ast.Module, edit: change.Spelling) -> Optional[List[str]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and job_calls.dotted_name(node).endswith("add_argument") and node.args]
    places = [call.args[0] for call in calls if getattr(call.args[0], "value", "") == edit.has]
    return _replaced(lines, places[0], "%s, %r" % (job_calls.text_of(lines, places[0]), edit.more)) if len(places) == 1 else None


def _keyed(lines: List[str], tree: ast.Module, edit: change.Key) -> Optional[List[str]]:
    """Add a key to the dictionary, which must be the only one of its kind in the file."""
    nodes = [node for node in ast.walk(tree) if _of_type(node, edit.of)]
    if len(nodes) != 1:
        return None
    node = nodes[0]
    if isinstance(node, ast.Dict):
        last = _span(lines, "", node.values[-1])
        first = _offset(lines, *job_calls.start(node.keys[-1] or node.values[-1]))
        return _appended(lines, node, last._replace(start=first), "%r: %s" % (edit.key, edit.value))
    call = node if isinstance(node, ast.Call) else None
    return None if call is None else _with(job_calls.CallInSource(lines, call, ast.Pass()), edit.key, edit.value)


def _of_type(node: ast.AST, of: str) -> bool:
    if isinstance(node, ast.Dict):
        pairs = [(key.value, value) for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        pairs = [(item.arg, item.value) for item in node.keywords]
    else:
        return False
    return any(key == "type" and (getattr(value, "value", "") == of or getattr(value, "id", "") == of) for key, value in pairs)


# The edits are those from which the finding's text is made. The source is parsed, never run. If a line is not the call that the log
# names, or one of several edits cannot be made, there is no diff rather than a wrong one.


_NO_NEWLINE = "\n\\ No newline at end of file"


def diff(finding: Finding, width: int = 3) -> List[str]:
    """Return the lines of a unified diff of every file that the change affects; empty if an edit cannot be made."""
    before: Dict[str, List[str]] = {}
    for file, chosen in _by_file(finding.edits).items():
        source = _source(file)
        if source is None:
            return []
        before[file] = source
        if applied(source, chosen) is None:
            return []
    lines: List[str] = []
    for file, chosen in _by_file(finding.edits).items():
        after = applied(before[file], chosen) or []
        names, whole = ("a/" + _name(file), "b/" + _name(file)), job_source.read(file)
        end = "" if whole is None or whole.text.endswith("\n") else _NO_NEWLINE
        lines += _unified(_ended(before[file], end), _ended(after, end), names, width)
    return lines


def _ended(lines: List[str], end: str) -> List[str]:
    return [*lines[:-1], lines[-1] + end] if lines else lines


def _unified(before: List[str], after: List[str], names: Tuple[str, str], width: int) -> Iterator[str]:
    import difflib

    for text in difflib.unified_diff(before, after, *names, n=width, lineterm=""):
        yield from text.split("\n")


def files(finding: Finding) -> List[str]:
    """Return the files of the job that the change affects."""
    return list(_by_file(finding.edits))


def shell(finding: Finding) -> List[str]:
    """Return the part of a change for the shell: variables, and the command to start the job."""
    return change.shell(finding.edits)


def _by_file(edits: List[change.Edit]) -> "Dict[str, List[change.InSource]]":
    edits_of: Dict[str, List[change.InSource]] = {}
    for edit in edits:
        if not isinstance(edit, (change.Variable, change.LaunchCommand)):
            file = edit.file if isinstance(edit, change.ConfigLine) else edit.site.file if edit.site is not None else ""
            edits_of.setdefault(file, []).append(edit)
    return edits_of


def _name(path: str) -> str:
    """Return a path that `patch -p1` accepts in the current folder, or in the folder of the file."""
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else os.path.basename(path)


def _source(path: str) -> Optional[List[str]]:
    """Return the lines of a Python file."""
    job_file = job_source.read(path) if path.endswith(".py") else None
    return job_file.text.splitlines() if job_file is not None else None
