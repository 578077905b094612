"""The `if` under which a model uses one of its parts: a rank that does not take it has no gradients there."""

import ast
from typing import Iterable, List, NamedTuple, Optional

from ddp_probe.shared.schema import Site
from ddp_probe.standing.arms import Condition, condition
from ddp_probe.standing.conditions import dotted
from ddp_probe.standing.source_trees import FUNCTIONS, SourceTrees


class UsedUnder(NamedTuple):
    """The innermost `if` around the only place at which a part is used."""

    part: str
    site: Site
    condition: Condition


def used_under(files: Iterable[str], model: str, part: str, when: float) -> Optional[UsedUnder]:
    """Return the `if` around the only use of `self.part` in a class; None if there are more, or no source."""
    sources = SourceTrees(when)
    for file in dict.fromkeys(files):
        module = sources.unchanged(file)
        nodes = ast.walk(module.tree) if module is not None else iter(())
        classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name == model]
        uses = _uses(classes[0], part) if len(classes) == 1 else []
        if len(uses) != 1:
            continue
        led = condition(Site(file, uses[0].lineno), when)
        return UsedUnder(part, Site(file, led.line), led) if led is not None else None
    return None


def _uses(model: ast.ClassDef, part: str) -> List[ast.Attribute]:
    """Return where the methods of a class read one of its parts, but for the one that makes it."""
    methods = [node for node in model.body if isinstance(node, FUNCTIONS) and node.name != "__init__"]
    uses: List[ast.Attribute] = []
    for method in methods:
        read = [node for node in ast.walk(method) if isinstance(node, ast.Attribute) and node.attr == part]
        uses += [node for node in read if isinstance(node.ctx, ast.Load) and dotted(node.value) == "self"]
    return uses
