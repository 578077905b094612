"""Whether two lines of the job belong to one decision, by its source: the arms of one `if`, or a call that some make on the way to the next one."""

import ast
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ddp_probe.reading import job_source
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared.schema import Site
from ddp_probe.standing.conditions import RANK, dotted, hint_of, names_in
from ddp_probe.standing.flow import Arm, Flow, FlowNode, FlowTooLargeError, only_choice
from ddp_probe.standing.source_trees import FUNCTIONS, Function, SourceModule, SourceTrees, called, own_nodes

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OF_WITH = ("__enter__", "__exit__")
_CALLERS = 200  # Places that call a function of one name.


class Decision(NamedTuple):
    """The `if` that holds a call, while all ranks come to the call after it."""

    line: int
    on_rank: bool


class Condition(NamedTuple):
    """The innermost `if` that a line is in the body of."""

    line: int
    text: str
    hint: str  # What it depends on, as of a statement that decides.


class _Place(NamedTuple):
    """One line in the graph of its function."""

    flow: Flow
    node: FlowNode


class Arms:
    """The source of a job, as it was at one time. Of a file that has changed since, only lines that still show the call are believed."""

    def __init__(self, when: float) -> None:
        self._sources = SourceTrees(when)
        self._flows: Dict[Function, Optional[Flow]] = {}

    def know(self, op: str, *sites: LedgerSite) -> bool:
        """Tell whether the source of the lines that call this operation is here."""
        return self._sources.know(op, *sites)

    def are_arms(self, one: LedgerSite, other: LedgerSite) -> bool:
        """Tell whether a rank makes one of two calls or the other: the arms of an `if`, a body and its handler, a loop in which ranks take turns."""
        if one.file != other.file:
            return False
        places = [self._places(one), self._places(other)]
        if any(_counts_ranks(arm.owner) for place in (*places[0], *places[1]) for arm in place.node.inside):
            return True
        if not places[0] or not places[1]:
            return False
        if places[0][0].flow is places[1][0].flow:
            return _apart(places[0][0], places[1][0])
        pairs = [(first, second) for first in places[0] for second in places[1] if first.flow is second.flow]
        return bool(pairs) and all(_apart(first, second) for first, second in pairs)

    def stand_in(self, site: LedgerSite) -> bool:
        """Tell whether a line is in torch's Join: there a rank that has ended stands in for the calls of the others.

        It does so where the `with` ends, which up to Python 3.9 is the last line of what is inside.
        """
        module = self._sources.module(site.file)
        if module is None:
            return False
        nodes = (node for node in ast.walk(module.tree) if isinstance(node, (ast.With, ast.AsyncWith)))
        around = [node for node in nodes if node.lineno <= site.line <= (node.end_lineno or 0)]
        return any(_is_join(item.context_expr, module) for node in around for item in node.items)

    def statement(self, site: LedgerSite) -> str:
        """Return the statement at a line, equal for equal ones at other lines; an empty string if it is not known."""
        holding = self._holding(site)
        return ast.dump(max(holding, key=lambda node: node.lineno)) if holding else ""

    def _holding(self, site: LedgerSite) -> List[ast.stmt]:
        """Return the statements that a line is in, in the order of their lines, if the source is as it was."""
        module = self._sources.unchanged(site.file)
        nodes = ast.walk(module.tree) if module is not None else iter(())
        statements = [node for node in nodes if isinstance(node, ast.stmt)]
        begun = [node for node in statements if node.lineno <= site.line]
        holding = [node for node in begun if site.line <= (node.end_lineno or node.lineno)]
        return sorted(holding, key=lambda node: node.lineno)

    def have_other_texts(self, one: LedgerSite, other: LedgerSite, name: str) -> bool:
        """Tell whether two lines give texts of their own to one function, under no `if` on the rank."""
        places = [self._places(one)[:1], self._places(other)[:1]]
        for place in (*places[0], *places[1]):
            if any(_is_on_rank(arm.owner) for arm in place.node.inside):
                return False
        texts = [self._texts(site, name) for site in (one, other)]
        return all(texts) and texts[0] != texts[1]

    def _texts(self, site: LedgerSite, name: str) -> List[str]:
        """Return the texts that a line gives to its one call of a function; none if it makes several."""
        holding = self._holding(site)
        parts: Sequence[ast.AST] = holding[-1:]
        if name in _OF_WITH:  # Up to Python 3.9 it is left at the last line of what is inside.
            around = [node for node in holding if isinstance(node, (ast.With, ast.AsyncWith))]
            parts = [item.context_expr for item in around[-1].items] if around else []
        calls: List[ast.Call] = []
        for part in parts:
            calls += [node for node in ast.walk(part) if isinstance(node, ast.Call)]
        if name not in _OF_WITH:
            calls = [call for call in calls if called(call) == name]
        given = [*calls[0].args, *(keyword.value for keyword in calls[0].keywords)] if len(calls) == 1 else []
        values = [part.value for part in given if isinstance(part, ast.Constant)]
        return [value for value in values if isinstance(value, str)]

    def choose_compared(self, one: LedgerSite, other: LedgerSite, name: str) -> bool:
        """Tell whether two arms give one function a value each, and their condition compares these."""
        module, choice = self._sources.unchanged(one.file), self._choice(one, other)
        if module is None or choice is None or _is_on_rank(choice):
            return False
        arms: List[Sequence[ast.AST]] = [self._holding(site)[-1:] for site in (one, other)]
        if isinstance(choice, ast.IfExp):
            arms = [[choice.body], [choice.orelse]]
        given = [_names_given(arm, name) for arm in arms]
        own = [given[0] - given[1], given[1] - given[0]]
        return all(own) and own[0] | own[1] <= set(names_in([choice.test], module))

    def _choice(self, one: LedgerSite, other: LedgerSite) -> Union[ast.If, ast.IfExp, None]:
        """Return the `if`, or the conditional expression of one line, of which two places are the arms."""
        function = self._sources.function(one)
        if (one.file, one.line) == (other.file, other.line):
            return only_choice(function, one.line) if function is not None else None
        places = [*self._places(one)[:1], *self._places(other)[:1]]
        if len(places) < 2:
            return None
        depth = len(_common(places[0].node, places[1].node))
        owners = [place.node.inside[depth].owner for place in places if len(place.node.inside) > depth]
        is_one = len(owners) == len(places) and owners[0] is owners[1]
        return owners[0] if is_one and isinstance(owners[0], ast.If) else None

    def passed_by(self, made: LedgerSite, usual: LedgerSite) -> Optional[Decision]:
        """Return the `if` that holds the first call, if whoever makes it comes to the second one next, and the others go there directly."""
        if made.file != usual.file:
            return None
        makers, others = self._places(made), self._places(usual)
        if not makers or not others:
            return None
        own, usual_place = makers[0], others[0]
        if own.flow is usual_place.flow:
            inside = own.node.inside[len(_common(own.node, usual_place.node)) :]
            return _decision(inside) if _comes_next(own, usual_place) else None
        called = [place for place in makers[1:] if place.flow is usual_place.flow]
        if not called or not all(_comes_next(place, usual_place) for place in called):
            return None
        return _decision(own.node.inside)

    def _places(self, site: LedgerSite) -> List[_Place]:
        """Return the place of a line in its function, and the places that call this function."""
        module = self._sources.module(site.file)
        if module is None:
            return []
        callers = [self._place(module, line) for line in _callers(module, site.line)]
        places = [self._place(module, site.line, site.arm), *callers]
        return [place for place in places if place is not None] if places[0] is not None else []

    def _place(self, module: SourceModule, line: int, arm: int = 0) -> Optional[_Place]:
        function = module.holding(line)
        if function is None:
            return None
        if function not in self._flows:
            self._flows[function] = _flow(function)
        flow = self._flows[function]
        nodes = flow.at(line, arm=arm) if flow is not None else []
        return _Place(flow, nodes[0]) if flow is not None and nodes else None


def _names_given(parts: Sequence[ast.AST], name: str) -> Set[str]:
    """Return the names that the calls of a function in these are given."""
    names: Set[str] = set()
    for node in own_nodes(iter(parts)):
        if isinstance(node, ast.Call) and called(node) == name:
            names.update(dotted(argument) for argument in node.args)
    return names - {""}


def _is_join(manager: ast.AST, module: SourceModule) -> bool:
    """Tell whether a context manager is made by join() or Join(), there or where its name is given to it."""
    if isinstance(manager, ast.Call):
        return called(manager) in ("join", "Join")
    if not isinstance(manager, ast.Name):
        return False
    assigned = [node for node in ast.walk(module.tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    made = [node for node in assigned if called(node.value) in ("join", "Join")]  # type: ignore[arg-type]
    return any(isinstance(target, ast.Name) and target.id == manager.id for node in made for target in node.targets)


def tree(file: str) -> Optional[ast.AST]:
    """Return the syntax tree of a file of the job, if it is here."""
    job_file = job_source.read(file) if file else None
    try:
        return ast.parse(job_file.text) if job_file is not None else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def condition(site: Site, when: float) -> Optional[Condition]:
    """Return what led to a line, by the source as it was then; None if the line is in no body of an `if`, or the source is not here."""
    module = SourceTrees(when).unchanged(site.file)
    function = module.holding(site.line) if module is not None else None
    if module is None or function is None:
        return None
    around = [node for node in own_nodes(ast.iter_child_nodes(function)) if isinstance(node, ast.If) and _in_body(node, site.line)]
    inner = max(around, key=lambda node: node.lineno, default=None)
    if inner is None or _asks_for_main(inner.test):
        return None
    return Condition(inner.lineno, "if %s" % module.said(inner.test), hint_of([inner.test], function, module))


def _in_body(node: ast.If, line: int) -> bool:
    return node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)


def _asks_for_main(test: ast.expr) -> bool:
    """Tell whether a condition only asks whether the file is the program."""
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def rank_branch(site: Optional[LedgerSite]) -> Optional[int]:
    """Return the line of the `if` that only some ranks take and that holds a call, or all calls of its function; None if there is none."""
    job_file = job_source.read(site.file) if site is not None and site.file else None
    if site is None or job_file is None:
        return None
    module = SourceTrees(job_file.changed).module(site.file)
    if module is None:
        return None
    own, *callers = [_rank_if(module, line) for line in (site.line, *_callers(module, site.line))]
    if own is not None:
        return own
    return callers[0] if callers and None not in callers else None


def _rank_if(module: SourceModule, line: int) -> Optional[int]:
    """Return the innermost `if` on a rank around a line, in its body or in its else."""
    function = module.holding(line)
    flow = _flow(function) if function is not None else None
    inside = [arm for node in flow.at(line)[:1] for arm in node.inside] if flow is not None else []
    lines = [getattr(arm.owner, "lineno", 0) for arm in inside if isinstance(arm.owner, ast.If) and _is_on_rank(arm.owner)]
    return max(lines, default=None)


def _flow(function: Function) -> Optional[Flow]:
    try:
        return Flow(function)
    except (FlowTooLargeError, RecursionError):
        return None


def _callers(module: SourceModule, line: int) -> List[int]:
    """Return the lines at which the function of a line is called."""
    function = module.holding(line)
    if not isinstance(function, FUNCTIONS):
        return []
    return [call.lineno for call in module.calls(function.name)][:_CALLERS]


def _decision(inside: Sequence[Arm]) -> Optional[Decision]:
    """Return the outermost `if` around a call, if nothing but `if` and `with` is around it."""
    branches = [arm.owner for arm in inside if isinstance(arm.owner, ast.If)]
    if not branches or any(not isinstance(arm.owner, (ast.If, ast.With, ast.AsyncWith)) for arm in inside):
        return None
    return Decision(branches[0].lineno, _is_on_rank(branches[0]))


def _comes_next(made: _Place, usual: _Place) -> bool:
    """Tell whether whoever passes the first line comes to the second one in any case, in the same turn of a loop."""
    waiting, seen = [made.node], {made.node}
    while waiting:
        for edge in waiting.pop().after:
            if edge.is_back or edge.node in (made.flow.exit, made.flow.escape):
                return False
            if edge.node is not usual.node and edge.node not in seen:
                seen.add(edge.node)
                waiting.append(edge.node)
    return made.node is not usual.node


def _apart(one: _Place, other: _Place) -> bool:
    """Tell whether no rank passes both lines on one way through the function, but for further turns of a loop."""
    if one.node is other.node:
        return False
    if not _reaches(one.node, other.node) and not _reaches(other.node, one.node):
        return True
    depth = len(_common(one.node, other.node))
    owners = [node.inside[depth].owner if len(node.inside) > depth else node.owner for node in (one.node, other.node)]
    return all(owner is not None and _is_on_rank(owner) for owner in owners)


def _reaches(one: FlowNode, other: FlowNode) -> bool:
    """Tell whether a way leads from one node to another, without a further turn of the loops around the first."""
    waiting, seen = [one], {one}
    turning: List[FlowNode] = []
    over: Set[ast.AST] = set()
    while waiting or turning:
        node = waiting.pop() if waiting else turning.pop()
        if node.owner is not None and node not in seen:
            over.add(node.owner)
        seen.add(node)
        for edge in node.after:
            if edge.is_back:
                turning += [edge.node] if edge.node not in seen else []
            elif edge.node not in seen and not any(arm.owner in over and arm.suite == "body" for arm in edge.node.inside):
                seen.add(edge.node)
                waiting.append(edge.node)
    return other in seen


def _common(one: FlowNode, other: FlowNode) -> Tuple[Arm, ...]:
    """Return the suites that hold both nodes."""
    common: List[Arm] = []
    for first, second in zip(one.inside, other.inside):
        if first.owner is not second.owner or first.suite != second.suite:
            break
        common.append(first)
    return tuple(common)


def _is_on_rank(node: ast.AST) -> bool:
    """Tell whether this is an `if` or a loop that asks for the rank."""
    test = getattr(node, "test", None) or getattr(node, "iter", None)
    return test is not None and RANK.search(ast.dump(test)) is not None


def _counts_ranks(node: ast.AST) -> bool:
    """Tell whether this is a loop that runs as often as the rank says: ranks take turns."""
    return isinstance(node, _LOOPS) and _is_on_rank(node)
