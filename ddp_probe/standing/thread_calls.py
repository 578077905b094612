"""A collective of a side thread that some ranks never made although their main threads went on: an exception that nobody read, as a rule.

What a function raises in a pool of threads is kept in its future. If nobody asks for the result, the rank goes on without the rest of that function.
"""

import ast
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.shared.ledger_schema import COLLECTIVES, PAIRED
from ddp_probe.standing.deciding import LONGEST_TEXT, Deciding, Statement
from ddp_probe.standing.source_trees import SourceModule, SourceTrees, called, function_name

_READS = frozenset(("result", "exception", "add_done_callback"))

ThreadCalls = Dict[Tuple[str, int], Record]
"""The collectives that a rank made in side threads, by group and number."""


def thread_calls(records: Sequence[Record]) -> ThreadCalls:
    """Return the collectives that the job made in side threads."""
    calls: ThreadCalls = {}
    for record in records:
        is_plain = record.in_side_thread and not record.is_inner and record.op not in PAIRED
        if is_plain and not record.is_pass and record.group is not None:
            calls[(record.group.id, record.seq)] = record
    return calls


def calls_at_once(records: Iterable[Record]) -> Optional[Tuple[Record, Record]]:
    """Return the first two collectives of one group that threads of a rank were in at once."""
    latest: Dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.entered_ns):
        is_plain = not (record.is_inner or record.is_async or record.signal) and record.left_ns > 0
        if not is_plain or record.group is None or record.op not in COLLECTIVES:
            continue
        before = latest.get(record.group.id)
        is_met = before is not None and record.entered_ns < before.left_ns
        if before is not None and is_met and (record.in_side_thread or before.in_side_thread):
            return before, record
        if before is None or before.left_ns < record.left_ns:
            latest[record.group.id] = record
    return None


def unread(sources: SourceTrees, way: Sequence[LedgerSite], files: Sequence[str]) -> Optional[Deciding]:
    """Return where the job waits for a function that it has submitted, or submits it, and never reads what that raised."""
    name = way[0].function.rpartition(".")[2] if way else ""
    statements: List[Statement] = []
    for file in sorted(set(files)):
        module = sources.unchanged(file)
        if module is not None:
            statements += _unread_in(file, module, name)
    if not name or not statements:
        return None
    first = statements[0]
    return Deciding(first.function, first.file, tuple(statements), len(statements) == 1, first.line, 0)


def _unread_in(file: str, module: SourceModule, name: str) -> Iterator[Statement]:
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    if any(called(call) in _READS for call in calls):
        return
    for node in ast.walk(module.tree):
        started = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.Expr)) or not _starts(started, name):
            continue
        futures = {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
        waits = [call for call in calls if called(call) in ("wait", "as_completed") and futures & _names(call)]
        shown = waits[0] if waits else node
        function = module.holding(shown.lineno) or module.tree
        yield Statement(file, shown.lineno, "call", module.said(shown)[:LONGEST_TEXT], (), "", function_name(function))


def _starts(call: Optional[ast.AST], name: str) -> bool:
    """Tell whether a call submits the function of this name to threads."""
    if not isinstance(call, ast.Call) or called(call) != "submit":
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(name in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in given)


def _names(call: ast.AST) -> "set[str]":
    return {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
