"""The condition under which the job asks a library's training loop to stop, if one rank's loop has ended and another's goes on.

The loop is the library's, and what it asks for is set by the job: a hook, a callback, an attribute of the trainer.
"""

import ast
from typing import Iterable, Iterator, List, Optional

from ddp_probe.standing.conditions import hint_of, names_in
from ddp_probe.standing.deciding import LONGEST_TEXT, Deciding, Statement
from ddp_probe.standing.source_trees import SourceModule, SourceTrees, called, function_name

_FLAGS = frozenset(
    (
        "stop_training",  # The loops of MMEngine: while self._epoch < self._max_epochs and not self.stop_training.
        "should_stop",  # Lightning's Trainer.
        "should_training_stop",  # TrainerControl of transformers.
        "should_epoch_stop",
        "should_terminate",  # Ignite's Engine.
    )
)
_ASKS = frozenset(("terminate", "terminate_epoch"))  # The methods of Ignite's Engine that set it.


def stopped_loop(sources: SourceTrees, files: Iterable[str]) -> Optional[Deciding]:
    """Return the conditions under which these files of the job ask a library's loop to stop; None if they never do."""
    statements: List[Statement] = []
    for file in sorted(set(files)):
        module = sources.unchanged(file)
        if module is not None:
            statements += [_condition(file, module, asking) for asking in _asking(module.tree)]
    shown = list(dict.fromkeys(statements))
    if not shown:
        return None
    return Deciding(shown[0].function, shown[0].file, tuple(shown), len(shown) == 1, 0, 0)


def _asking(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that ask a loop to stop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_name(target) in _FLAGS for target in node.targets):
            is_off = isinstance(node.value, ast.Constant) and not node.value.value
            if not is_off:
                yield node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in _ASKS:
            yield node


def _name(target: ast.AST) -> str:
    return target.attr if isinstance(target, ast.Attribute) else ""


def _condition(file: str, module: SourceModule, asking: ast.stmt) -> Statement:
    """Return the innermost `if` around a statement, or what it sets if there is none."""
    function = module.holding(asking.lineno) or module.tree
    around = [node for node in ast.walk(function) if isinstance(node, ast.If) and asking in ast.walk(node)]
    branch = max(around, key=lambda node: node.lineno, default=None)
    asked: ast.AST = branch.test if branch is not None else asking
    text = "if %s" % module.said(asked) if branch is not None else module.said(asked)
    line = branch.lineno if branch is not None else asking.lineno
    names, hint = names_in([asked], module), hint_of([asked], function, module)
    return Statement(file, line, "if" if branch is not None else "conditional", text[:LONGEST_TEXT], names, hint, function_name(function))
