"""What a condition shows of itself: the names in it, and what kind of thing its value comes from."""

import ast
import re
from typing import Iterator, List, Optional, Sequence, Set, Tuple

from ddp_probe.shared.mask_forms import Expression
from ddp_probe.standing.source_trees import FUNCTIONS, Function, SourceModule, called, own_nodes

_RANK_WORDS = r"(?:^|_|\b)ranks?(?:\b|_)|is_main|is_master|main_process|master_process|is_global_zero"
RANK = Expression(_RANK_WORDS, re.IGNORECASE)
_DIRECT = (
    ("finite", r"^(?:isfinite|isnan|isinf|is_?finite|has_?(?:inf|nan)|inf|nan|nan_to_num|found_inf|overflow)$"),
    ("clock", r"^(?:time|time_ns|monotonic|monotonic_ns|perf_counter|process_time|datetime|now|utcnow|elapsed|deadline|timeit|clock)$"),
    ("random", r"^(?:random|rand|randn|randint|randrange|uniform|choice|choices|shuffle|bernoulli|rng|randperm|multinomial|default_rng)$"),
    ("file", r"^(?:exists|isfile|isdir|lexists|is_file|is_dir|glob|iglob|listdir|scandir|getmtime|getsize|stat|Path|access|rglob)$"),
)
_WORDS = (
    (
        "metric",
        r"(?:^|_)(?:best|loss|losses|acc|accuracy|score|metric|metrics|auc|f1|ppl|perplexity|bleu|mAP|miou|patience|bad_epochs|norm)\d*(?:_|$)",
    ),
    ("data", r"(?:^|_)(?:batch|batches|sample|samples|loader|dataloader|dataset|data|images|inputs|labels|targets|len|StopIteration|tokens)(?:_|$)"),
)
_MATCHERS = [(hint, re.compile(pattern)) for hint, pattern in _DIRECT]
_RANK_MATCHER = re.compile(_RANK_WORDS, re.IGNORECASE)
_WORD_MATCHERS = [(hint, re.compile(pattern, re.IGNORECASE)) for hint, pattern in _WORDS]
_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)
_BACK = 2  # Assignments that are followed back from a name.
_MOST = 40  # Expressions that are looked at for one condition.


def names_in(parts: Sequence[ast.AST], module: Optional[SourceModule] = None) -> Tuple[str, ...]:
    """Return the names whose values a condition asks for, such as `loss` and `self.best`, in their order; not what it calls or imports."""
    imported = module.imported() if module is not None else ()
    names: List[Tuple[int, int, str]] = []
    waiting = list(parts)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            waiting += [*node.args, *(keyword.value for keyword in node.keywords)]
            if isinstance(node.func, ast.Attribute):
                waiting.append(node.func.value)
            continue
        name = dotted(node)
        if name.partition(".")[0] in imported:
            continue
        if name:
            names.append((getattr(node, "lineno", 0), getattr(node, "col_offset", 0), name))
        elif not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return tuple(dict.fromkeys(name for _, _, name in sorted(names)))


def hint_of(parts: Sequence[ast.AST], function: Function, module: SourceModule) -> str:
    """Return what a condition depends on, by its own words, or by those of what it was computed from in its function."""
    level = list(parts)
    seen: Set[int] = set()
    for _ in range(_BACK + 1):
        computed = [*level, *_returned_by(level, module)]
        hint = _shown(computed, _MATCHERS) or _rank_shown(computed) or _shown(level, _WORD_MATCHERS)
        if hint:
            return hint
        level = [part for part in _computed_from(level, function) if id(part) not in seen][:_MOST]
        seen.update(map(id, level))
    return ""


def _shown(parts: Sequence[ast.AST], matchers: Sequence[Tuple[str, "re.Pattern[str]"]]) -> str:
    words = {word for part in parts for word in _identifiers(part)}
    for hint, matcher in matchers:
        if any(map(matcher.search, words)):
            return hint
    return "data" if matchers is _WORD_MATCHERS and any(map(_asks_for_none, parts)) else ""


def _rank_shown(parts: Sequence[ast.AST]) -> str:
    """Return "rank" if the rank itself is asked about; a value that is computed from it, or an element with that index, is each rank's own data."""
    waiting = list(parts)
    while waiting:
        node = waiting.pop()
        word = getattr(node, "id", None) or getattr(node, "attr", None)
        if isinstance(word, str) and _RANK_MATCHER.search(word):
            return "rank"
        if isinstance(node, ast.Call):
            waiting.append(node.func)
        elif isinstance(node, ast.Subscript):
            waiting.append(node.value)
        elif not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return ""


def _identifiers(part: ast.AST) -> Iterator[str]:
    for node in own_nodes(iter([part])):
        word = getattr(node, "id", None) or getattr(node, "attr", None)
        if isinstance(word, str):
            yield word
        elif isinstance(node, ast.Call) and called(node) == "float" and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value).strip("+-")


def _asks_for_none(part: ast.AST) -> bool:
    nodes = own_nodes(iter([part]))
    return any(isinstance(node, ast.Compare) and any(_is_none(each) for each in node.comparators) for node in nodes)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _computed_from(parts: Sequence[ast.AST], function: Function) -> Iterator[ast.AST]:
    """Yield what was assigned to the names of these expressions, the latest first."""
    names = set(names_in(parts))
    lines = [getattr(part, "lineno", 0) for part in parts]
    before = max(lines, default=0)
    assigned = [node for node in own_nodes(iter(_body(function))) if _targets(node) & names]
    assigned.sort(key=lambda node: (getattr(node, "lineno", 0) > before, -getattr(node, "lineno", 0)))
    for node in assigned:
        value = getattr(node, "value", None)
        if value is not None:
            yield value


def _returned_by(parts: Sequence[ast.AST], module: SourceModule) -> List[ast.AST]:
    """Return what the job's functions that these expressions call return."""
    returned: List[ast.AST] = []
    for part in parts:
        for node in own_nodes(iter([part])):
            callee = module.named(called(node)) if isinstance(node, ast.Call) else None
            if callee is not None:
                returned += _returned(callee)
    return returned[:_MOST]


def _returned(function: Function) -> Iterator[ast.AST]:
    for node in own_nodes(iter(_body(function))):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _body(function: Function) -> List[ast.AST]:
    return [function.body] if isinstance(function, ast.Lambda) else list(function.body)


def _targets(node: ast.AST) -> Set[str]:
    if not isinstance(node, _ASSIGNS):
        return set()
    names = set()
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    for target in targets:
        for each in getattr(target, "elts", None) or [target]:
            names.add(dotted(each))
    return names - {""}


def dotted(node: Optional[ast.AST]) -> str:
    """Return a name or a chain of attributes as it is written; empty for anything else."""
    parts: List[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
