"""The change for good, as a diff of the job's own call, where its source is at hand: a remedy is a bridge, not a home.

The source is parsed, never run. Where the line is not the call that a log speaks of, there is no diff rather than a wrong one.
"""

import ast
import difflib
import os
import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.diagnose import Finding

_LARGEST = 2_000_000  # Bytes; nobody writes more by hand.
_BUFFER = "HistoryBuffer"


class Own(NamedTuple):
    """A call in the job's own source: its lines, the call, and the statement that it is part of."""

    lines: List[str]
    call: ast.Call
    statement: ast.stmt

    @property
    def text(self) -> str:
        """Return the source of the call."""
        return _between(self.lines, _start(self.call), _end(self.call))

    @property
    def indent(self) -> str:
        """Return what stands in front of the statement."""
        line = self.lines[self.statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]


def diff(finding: Finding, width: int = 3) -> List[str]:
    """Return the lines of a unified diff for the first call site whose source is here; empty where there is none."""
    edit = _EDITS.get(finding.fix)
    for site in [item.site for item in finding.evidence if item.site is not None] if edit else []:
        source = _source(site.file)
        own = _call(source, site.line, finding.fix) if source is not None else None
        changed = edit(own) if own is not None and edit is not None else None
        if source is not None and changed is not None and changed != source:
            name = os.path.basename(site.file)
            return list(difflib.unified_diff(source, changed, "a/" + name, "b/" + name, n=width, lineterm=""))
    return []


# --- finding the call


def _source(path: str) -> Optional[List[str]]:
    """A path in a log is no more than a claim: only a Python file is read, and no more of it than a person writes."""
    try:
        if not path.endswith(".py") or not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def _call(lines: List[str], number: int, fix: str) -> Optional[Own]:
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: Optional[Own] = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= number <= (node.end_lineno or node.lineno):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and _CALLED[fix].search(_name(inner)) and inner.lineno <= number <= (inner.end_lineno or 0):
                    found = Own(lines, inner, node)
    return found


def _name(call: ast.Call) -> str:
    """Return the dotted name that is called."""
    parts: List[str] = []
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


# --- positions: those of ast count bytes, and the lines are text


def _at(lines: List[str], line: int, column: int) -> Tuple[int, int]:
    return line - 1, len(lines[line - 1].encode("utf-8")[:column].decode("utf-8", "replace"))


def _start(node: ast.AST) -> Tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]  # every expression has them


def _end(node: ast.AST) -> Tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]  # the same, from Python 3.8 on


def _between(lines: List[str], start: Tuple[int, int], end: Tuple[int, int]) -> str:
    (first, left), (last, right) = _at(lines, *start), _at(lines, *end)
    if first == last:
        return lines[first][left:right]
    return "\n".join([lines[first][left:], *lines[first + 1 : last], lines[last][:right]])


def _replaced(own: Own, text: str) -> List[str]:
    (first, left), (last, right) = _at(own.lines, *_start(own.call)), _at(own.lines, *_end(own.call))
    changed = own.lines[first][:left] + text + own.lines[last][right:]
    return [*own.lines[:first], *changed.split("\n"), *own.lines[last + 1 :]]


def _before(own: Own, *added: str) -> List[str]:
    at = own.statement.lineno - 1
    return [*own.lines[:at], *[own.indent + line for line in added], *own.lines[at:]]


# --- the edits, by the name of the remedy


def _arguments(own: Own) -> List[Tuple[str, str]]:
    """Return each argument's keyword, empty for none, and its source."""
    given = [("", _between(own.lines, _start(value), _end(value))) for value in own.call.args]
    return given + [(item.arg or "**", _between(own.lines, _start(item.value), _end(item.value))) for item in own.call.keywords]


def _with(own: Own, arguments: List[Tuple[str, str]]) -> List[str]:
    words = [value if not name else "**" + value if name == "**" else "%s=%s" % (name, value) for name, value in arguments]
    function = _between(own.lines, _start(own.call.func), _end(own.call.func))
    return _replaced(own, "%s(%s)" % (function, ", ".join(words)))


def _without_device_ids(own: Own) -> Optional[List[str]]:
    arguments = _arguments(own)
    kept = [(name, value) for name, value in arguments if name not in ("device_ids", "output_device")]
    return _with(own, kept) if len(kept) < len(arguments) else None


def _with_keyword(name: str, value: str) -> Callable[[Own], Optional[List[str]]]:
    def edit(own: Own) -> Optional[List[str]]:
        arguments = _arguments(own)
        return None if name in dict(arguments) else _with(own, [*arguments, (name, value)])

    return edit


def _moved_first(own: Own) -> Optional[List[str]]:
    arguments = _arguments(own)
    model = next((value for name, value in arguments if name in ("", "module")), "")
    return _before(own, "%s.to(device)  # this rank's card" % model) if model.isidentifier() else None


def _only_with_cuda(own: Own) -> Optional[List[str]]:
    if not isinstance(own.statement, ast.Expr) or own.statement.value is not own.call or own.statement.lineno != own.statement.end_lineno:
        return None
    at = own.statement.lineno - 1
    line = own.lines[at]
    return [*own.lines[:at], own.indent + "if torch.cuda.is_available():", own.indent + "    " + line.lstrip(), *own.lines[at + 1 :]]


def _allowed(own: Own) -> Optional[List[str]]:
    return _before(own, "torch.serialization.add_safe_globals([%s])  # and the other classes that the error names" % _BUFFER)


def _beside(own: Own) -> Optional[List[str]]:
    arguments = _arguments(own)
    alone = isinstance(own.statement, ast.Expr) and own.statement.value is own.call
    if not alone or len(arguments) < 2 or arguments[1][0] not in ("", "f"):
        return None
    path = arguments[1][1]
    saved = _with(own, [arguments[0], (arguments[1][0], "%s + '.tmp'" % path), *arguments[2:]])
    end = (own.statement.end_lineno or own.statement.lineno) + len(saved) - len(own.lines)
    return [*saved[:end], "%sos.replace(%s + '.tmp', %s)" % (own.indent, path, path), *saved[end:]]


_WRAP = re.compile(r"(^|\.)\w*(DistributedDataParallel|DDP)$")
_LOAD = re.compile(r"(^|\.)load$")
_SAVE = re.compile(r"(^|\.)save$")
_GROUP = re.compile(r"(^|\.)init_process_group$")
_CALLED: Dict[str, "re.Pattern[str]"] = {
    "device-ids": _WRAP,
    "move-model": _WRAP,
    "map-location": _LOAD,
    "weights-only": _LOAD,
    "settled-load": _SAVE,
    "atomic-save": _SAVE,
    "set-device": re.compile(r"(^|\.)set_device$"),
    "timeout": _GROUP,
}
_EDITS: Dict[str, Callable[[Own], Optional[List[str]]]] = {
    "device-ids": _without_device_ids,
    "move-model": _moved_first,
    "map-location": _with_keyword("map_location", "'cpu'"),
    "weights-only": _allowed,
    "settled-load": _beside,  # at the writer: a barrier before the load would hang where not every rank loads
    "atomic-save": _beside,
    "set-device": _only_with_cuda,
    "timeout": _with_keyword("timeout", "datetime.timedelta(hours=2)"),
}
